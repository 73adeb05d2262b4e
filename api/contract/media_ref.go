package contract

// Encode returns the JSON text of the media bundle as its ConfigMap holds it, and
// the digest of that text. It fails when the text is longer than MaxMediaBytes.
func (m *Media) Encode() (raw []byte, digest string, err error) {
	raw, err = Canonical(m)
	if err != nil {
		return nil, "", err
	}
	if len(raw) > MaxMediaBytes {
		return nil, "", Faultf(ReasonOutputTooLarge, "the media bundle has %d bytes, more than %d", len(raw), MaxMediaBytes)
	}
	return raw, Digest(raw), nil
}

// Ref returns how a report names the media bundle with this digest, which call
// seq of the execution pinned as pin left behind.
func (m *Media) Ref(pin string, seq int64, digest string) *MediaRef {
	return &MediaRef{ConfigMap: MediaName(pin), Digest: digest, Geometry: m.Geometry, Seq: seq}
}
