package contract

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// picture is a black picture of that size and type.
func picture(t *testing.T, mime string, width, height int) Picture {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})
	var (
		out bytes.Buffer
		err error
	)
	switch mime {
	case "image/png":
		err = png.Encode(&out, img)
	case "image/jpeg":
		err = jpeg.Encode(&out, img, nil)
	case "image/gif":
		err = gif.Encode(&out, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Picture{MIMEType: mime, Data: out.Bytes()}
}

// bomb is a picture whose header says that it is a square of that size.
func bomb(t *testing.T, size uint32) (Geometry, Picture) {
	p := picture(t, "image/png", 1, 1)
	const at = 16 // of width and height in the first chunk, which is covered by a sum
	binary.BigEndian.PutUint32(p.Data[at:], size)
	binary.BigEndian.PutUint32(p.Data[at+4:], size)
	binary.BigEndian.PutUint32(p.Data[at+13:], crc32.ChecksumIEEE(p.Data[at-4:at+13]))
	return Geometry{Width: int64(size), Height: int64(size)}, p
}

func TestMediaComplete(t *testing.T) {
	whole := func(f func(*Media)) *Media {
		m := &Media{
			Marker: MediaMarker, Text: "a screen", Geometry: Geometry{Width: 4, Height: 3},
			Pictures: []Picture{picture(t, "image/png", 4, 3)},
		}
		f(m)
		return m
	}
	keep := func(*Media) {}
	tests := map[string]struct {
		media *Media
		want  string // in the error; "" is complete
	}{
		"png":                {whole(keep), ""},
		"jpeg and gif":       {whole(func(m *Media) { m.Pictures = []Picture{picture(t, "image/jpeg", 4, 3), picture(t, "image/gif", 4, 3)} }), ""},
		"none":               {nil, "no media"},
		"no marker":          {whole(func(m *Media) { m.Marker = "" }), "marker"},
		"another marker":     {whole(func(m *Media) { m.Marker += "x" }), "marker"},
		"no text":            {whole(func(m *Media) { m.Text = " \n" }), "text"},
		"no geometry":        {whole(func(m *Media) { m.Geometry = Geometry{} }), "geometry"},
		"negative":           {whole(func(m *Media) { m.Geometry.Width = -4 }), "geometry"},
		"a picture bomb":     {whole(func(m *Media) { m.Geometry, m.Pictures[0] = bomb(t, 1<<16) }), "pixels"},
		"beyond all bounds":  {whole(func(m *Media) { m.Geometry = Geometry{Width: 1 << 62, Height: 1 << 62} }), "pixels"},
		"a long picture":     {whole(func(m *Media) { m.Geometry, m.Pictures[0] = bomb(t, 1<<13) }), ""},
		"too many pictures":  {whole(func(m *Media) { m.Pictures = slices.Repeat(m.Pictures, MaxMediaPictures+1) }), "more than 64"},
		"as many as may be":  {whole(func(m *Media) { m.Pictures = slices.Repeat(m.Pictures, MaxMediaPictures) }), ""},
		"no picture":         {whole(func(m *Media) { m.Pictures = nil }), "no picture"},
		"another size":       {whole(func(m *Media) { m.Geometry.Height = 4 }), "geometry"},
		"one of two differs": {whole(func(m *Media) { m.Pictures = append(m.Pictures, picture(t, "image/png", 3, 4)) }), "picture 2"},
		"another type":       {whole(func(m *Media) { m.Pictures[0].MIMEType = "image/svg+xml" }), "neither"},
		"not what it says":   {whole(func(m *Media) { m.Pictures[0].MIMEType = "image/gif" }), "read"},
		"empty":              {whole(func(m *Media) { m.Pictures[0].Data = nil }), "read"},
		"too large":          {whole(func(m *Media) { m.Pictures[0].Data = append(m.Pictures[0].Data, make([]byte, MaxMediaBytes)...) }), "more than"},
		"too large as JSON":  {whole(func(m *Media) { m.Pictures[0].Data = append(m.Pictures[0].Data, make([]byte, MaxMediaBytes*3/4)...) }), "more than"},
		"too much text":      {whole(func(m *Media) { m.Text = strings.Repeat("x", MaxMediaBytes+1) }), "more than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.media.Complete()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestMemoryOfHostileMedia: media is read for what it can be, not for what it says.
func TestMemoryOfHostileMedia(t *testing.T) {
	for _, item := range []string{`{}`, `0`, `[]`, `{"data":""}`} {
		text := []byte(`{"value":1,"media":{"marker":"` + MediaMarker + `","pictures":[` + strings.Repeat(item+",", MaxMediaBytes/(len(item)+1)) + item + `]}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := DecodeToolResult(text)
		runtime.ReadMemStats(&after)
		if err != nil || x.Media == nil || x.Media.Complete() == nil {
			t.Errorf("%s: media %+v, error %v", item, x.Media, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("a list of %s took %d MiB", item, n>>20)
		}
	}
}
