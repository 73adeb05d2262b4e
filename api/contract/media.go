package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

// MediaMarker marks a media bundle as one whose pictures belong to its geometry.
// Media without it is ordinary, and is never kept.
const MediaMarker = "codeact.dev/geometry-bound.v1"

// MaxMediaBytes bounds the JSON text of a media bundle, so that it fits a ConfigMap.
const MaxMediaBytes = 900_000

// MaxMediaPixels bounds the geometry: a picture of a few bytes may claim to be of
// any size, and whoever shows it has to believe that. It is 256 MiB, shown.
const MaxMediaPixels = 64 << 20

// MaxMediaPictures bounds the pictures of a media bundle.
const MaxMediaPictures = 64

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

// pictureHeaders reads the size of a picture from its header, and no more of it.
var pictureHeaders = map[string]func(io.Reader) (image.Config, error){
	"image/png": png.DecodeConfig, "image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
}

// Complete returns nil when the media is whole: it has the marker, a text that is
// not blank, and 1 to MaxMediaPictures pictures, and every picture is a PNG, JPEG or GIF
// whose own header has exactly the geometry; that has at most MaxMediaPixels, and
// the JSON text at most MaxMediaBytes. The error says what is missing. Media that is not complete is
// nothing.
func (m *Media) Complete() error {
	switch {
	case m == nil:
		return errors.New("there is no media")
	case m.Marker != MediaMarker:
		return errors.New("the media has no marker")
	case strings.TrimSpace(m.Text) == "":
		return errors.New("the media has no text")
	case m.Geometry.Width < 1 || m.Geometry.Height < 1:
		return errors.New("the media has no geometry")
	case m.Geometry.Width > MaxMediaPixels/m.Geometry.Height:
		return fmt.Errorf("the media's geometry has more than %d pixels", MaxMediaPixels)
	case len(m.Pictures) == 0:
		return errors.New("the media has no picture")
	case len(m.Pictures) > MaxMediaPictures:
		return errTooManyPictures
	}
	size := len(m.Text)
	for i, p := range m.Pictures {
		if size += len(p.Data); size > MaxMediaBytes {
			return errMediaTooLarge
		}
		if err := p.has(m.Geometry); err != nil {
			return fmt.Errorf("picture %d: %w", i+1, err)
		}
	}
	if text, err := json.Marshal(m); err != nil || len(text) > MaxMediaBytes {
		return errMediaTooLarge
	}
	return nil
}

var errTooManyPictures = fmt.Errorf("the media has more than %d pictures", MaxMediaPictures)

var errMediaTooLarge = fmt.Errorf("the media has more than %d bytes", MaxMediaBytes)

// has checks that the picture is what it says, and of that size.
func (p Picture) has(g Geometry) error {
	header, known := pictureHeaders[p.MIMEType]
	if !known {
		return errors.New("it is neither image/png nor image/jpeg nor image/gif")
	}
	c, err := header(bytes.NewReader(p.Data))
	if err != nil {
		return errors.New("it cannot be read as its type")
	}
	if int64(c.Width) != g.Width || int64(c.Height) != g.Height {
		return errors.New("its size is not the geometry")
	}
	return nil
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
