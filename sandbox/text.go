package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// A string of QuickJS is read where it lies: its own functions would copy it
// twice, in six calls. What it looks like is a fact about the examined build (see
// also the names of bufferString and what follows there).
const (
	stringHead   = 4  // 64 bits with the length and the flags
	sliceParent  = 20 // of a slice: the string that it is a part of
	sliceStart   = 24 // and where it begins there, in bytes
	stringLength = 1<<31 - 1
)

var errOutside = errors.New("string out of range")

// text copies a JavaScript string out of the VM, as UTF-8. More than limit bytes
// answer errTooLong, and are not copied. Half of a surrogate pair becomes three
// bytes that are not valid UTF-8. What is not a string is refused, because
// converting it would run guest code.
func (in *instance) text(ctx context.Context, v uint64, limit int64) ([]byte, error) {
	switch v >> 32 {
	case tagString:
	case tagRope:
		return in.converted(ctx, v, limit)
	default:
		return nil, errors.New("a value that is not a string crossed the boundary")
	}
	p := uint32(v)
	head, ok := in.mem.ReadUint64Le(p + stringHead)
	if !ok {
		return nil, errOutside
	}
	chars := p + stringData
	if head&sliceFlag != 0 {
		parent, ok1 := in.mem.ReadUint32Le(p + sliceParent)
		start, ok2 := in.mem.ReadUint32Le(p + sliceStart)
		if !ok1 || !ok2 {
			return nil, errOutside
		}
		chars = parent + start + stringData
	}
	n, width := uint32(head&stringLength), uint32(1)
	if head&wideFlag != 0 {
		width = 2
	}
	if int64(n) > limit {
		return nil, errTooLong
	}
	b, ok := in.mem.Read(chars, n*width)
	if !ok {
		return nil, errOutside
	}
	if width == 2 {
		return fromWide(b, limit)
	}
	return fromLatin1(b, limit)
}

func fromLatin1(b []byte, limit int64) ([]byte, error) {
	if ascii(b) {
		return bytes.Clone(b), nil
	}
	size := int64(len(b))
	for _, c := range b {
		size += int64(c >> 7)
	}
	if size > limit {
		return nil, errTooLong
	}
	out := make([]byte, 0, size)
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out, nil
}

// ascii looks at eight bytes at once.
func ascii(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func fromWide(b []byte, limit int64) ([]byte, error) {
	out := make([]byte, 0, min(int64(len(b)), limit)+utf8.UTFMax)
	for len(b) >= 2 {
		c := rune(binary.LittleEndian.Uint16(b))
		b = b[2:]
		if utf16.IsSurrogate(c) && len(b) >= 2 {
			if r := utf16.DecodeRune(c, rune(binary.LittleEndian.Uint16(b))); r != utf8.RuneError {
				c, b = r, b[2:]
			}
		}
		if utf16.IsSurrogate(c) {
			out = append(out, 0xe0|byte(c>>12), 0x80|byte(c>>6)&0x3f, 0x80|byte(c)&0x3f)
		} else {
			out = utf8.AppendRune(out, c)
		}
		if int64(len(out)) > limit {
			return nil, errTooLong
		}
	}
	return out, nil
}

// converted lets QuickJS itself convert a string that lies in pieces.
func (in *instance) converted(ctx context.Context, v uint64, limit int64) ([]byte, error) {
	p, err := in.call(ctx, "QJS_ToCString", in.context, v)
	if err != nil {
		return nil, err
	}
	if p == 0 {
		return nil, errHeap
	}
	packed, ok := in.mem.ReadUint64Le(uint32(p))
	if !ok {
		return nil, errOutside
	}
	addr, size := uint32(packed>>32), uint32(packed)
	if int64(size) > limit {
		return nil, errTooLong
	}
	b, ok := in.mem.Read(addr, size)
	if !ok {
		return nil, errOutside
	}
	s := bytes.Clone(b)
	if _, err := in.call(ctx, "JS_FreeCString", in.context, uint64(addr)); err != nil {
		return nil, err
	}
	_, err = in.call(ctx, "free", p)
	return s, err
}

// newString makes a JavaScript string of the parts, which are UTF-8 without NUL.
func (in *instance) newString(ctx context.Context, parts ...[]byte) (uint64, error) {
	p, err := in.cstring(ctx, parts...)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, "QJS_NewString", in.context, uint64(p))
	if err != nil {
		return 0, err
	}
	if v>>32 == tagException {
		return 0, errHeap
	}
	return v, in.free(ctx, p)
}

// free gives a C string back, unless it is in the scratch.
func (in *instance) free(ctx context.Context, p uint32) error {
	if p == in.scratch {
		return nil
	}
	_, err := in.call(ctx, "free", uint64(p))
	return err
}

// scratchBytes is room for short C strings, which then need not be allocated.
const scratchBytes = 4096

// cstring makes a C string of the parts: in the scratch, where the next one will
// be too, or if it is longer in new memory, which the caller frees.
func (in *instance) cstring(ctx context.Context, parts ...[]byte) (uint32, error) {
	size := uint64(1)
	for _, s := range parts {
		size += uint64(len(s))
	}
	p := in.scratch
	if size > scratchBytes {
		q, err := in.call(ctx, "malloc", size)
		if err != nil {
			return 0, err
		}
		if q == 0 {
			return 0, errHeap
		}
		p = uint32(q)
	}
	at := p
	for _, s := range parts {
		if !in.mem.Write(at, s) {
			return 0, errors.New("allocation out of range")
		}
		at += uint32(len(s))
	}
	if !in.mem.WriteByte(at, 0) {
		return 0, errors.New("allocation out of range")
	}
	return p, nil
}
