package sandbox

// extent is a part of the snapshot that is not all zero.
type extent struct {
	off  int
	data []byte
}

// extents lists the non-zero parts of b by 4 KiB blocks: most of the snapshot
// is a stack that nobody has used yet.
func extents(b []byte) []extent {
	const block = 4096
	var out []extent
	for off := 0; off < len(b); off += block {
		p := b[off:min(off+block, len(b))]
		if allZero(p) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].off+len(out[n-1].data) == off {
			out[n-1].data = b[out[n-1].off : off+len(p)]
			continue
		}
		out = append(out, extent{off, p})
	}
	return out
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// writeExtents fills the memory of a new instance, which is all zero.
func writeExtents(mem []byte, sparse []extent) {
	for _, x := range sparse {
		copy(mem[x.off:], x.data)
	}
}
