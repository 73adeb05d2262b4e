package contract

// MediaMarker marks a media bundle as one whose pictures belong to its geometry.
// Media without it is ordinary, and is never kept.
const MediaMarker = "codeact.dev/geometry-bound.v1"

// MaxMediaBytes bounds the JSON text of a media bundle, so that it fits a ConfigMap.
const MaxMediaBytes = 900_000

// MediaKey is the key of the media bundle in its ConfigMap.
const MediaKey = "media.json"

// Media is what a tool shows of the state that it left behind: pictures, the
// text that goes with them and the geometry that positions in them refer to. It
// never enters the program; the newest complete one goes to the run's result.
type Media struct {
	// Marker is MediaMarker.
	Marker string `json:"marker"`
	// Text is the prompt text that goes with the pictures.
	Text string `json:"text"`
	// Geometry is the space of the pictures' coordinates.
	Geometry Geometry `json:"geometry"`
	// Pictures are in the order in which they are to be shown.
	Pictures []Picture `json:"pictures"`
}

// Geometry is the size of what the pictures show, in pixels.
// +kubebuilder:object:generate=true
type Geometry struct {
	// width is in pixels.
	// +required
	// +kubebuilder:validation:Minimum=1
	Width int64 `json:"width"`
	// height is in pixels.
	// +required
	// +kubebuilder:validation:Minimum=1
	Height int64 `json:"height"`
}

// Picture is one picture.
type Picture struct {
	// MIMEType is image/png, image/jpeg or image/gif.
	MIMEType string `json:"mimeType"`
	// Data is the file.
	Data []byte `json:"data"`
}

// MediaRef names the ConfigMap that holds the media of a run's result.
// +kubebuilder:object:generate=true
type MediaRef struct {
	// configMap is its name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`
	// digest is the digest of the media bundle's bytes.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`
	// geometry is the media's.
	// +required
	Geometry Geometry `json:"geometry"`
	// seq is the call that it came from.
	// +required
	Seq int64 `json:"seq"`
}
