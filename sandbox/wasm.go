package sandbox

import (
	"errors"
	"fmt"
)

// Section numbers of the WebAssembly binary format that rewrite touches.
const (
	secCustom   = 0
	secType     = 1
	secImport   = 2
	secFunction = 3
	secMemory   = 5
	secGlobal   = 6
	secExport   = 7
	secElement  = 9
	secCode     = 10
	secData     = 11
	secCount    = 12 // how many data segments there are
)

const wasmHeader = "\x00asm\x01\x00\x00\x00"

type section struct {
	id   byte
	body []byte
}

// splitSections cuts a module into its sections, without the custom ones: it
// is not to be debugged.
func splitSections(in []byte) ([]section, error) {
	if len(in) < 8 || string(in[:8]) != wasmHeader {
		return nil, errors.New("not a WebAssembly module")
	}
	var out []section
	r := &reader{b: in, p: 8}
	for r.p < len(in) {
		id := r.byte()
		body := r.bytes(int(r.uleb()))
		if r.bad {
			return nil, errors.New("cut section")
		}
		if id != secCustom {
			out = append(out, section{id, append([]byte(nil), body...)})
		}
	}
	return out, nil
}

func joinSections(secs []section) []byte {
	out := []byte(wasmHeader)
	for _, s := range secs {
		out = append(out, s.id)
		out = appendUleb(out, uint64(len(s.body)))
		out = append(out, s.body...)
	}
	return out
}

// reader walks over a part of a module. After a read beyond the end bad is set
// and every further read answers zero.
type reader struct {
	b   []byte
	p   int
	bad bool
}

func (r *reader) byte() byte {
	if r.p >= len(r.b) {
		r.bad = true
		return 0
	}
	r.p++
	return r.b[r.p-1]
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b)-r.p {
		r.bad, r.p = true, len(r.b)
		return nil
	}
	r.p += n
	return r.b[r.p-n : r.p]
}

func (r *reader) uleb() uint64 {
	var v uint64
	for s := 0; s < 64; s += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << s
		if c < 0x80 {
			return v
		}
	}
	r.bad = true
	return 0
}

func (r *reader) sleb() int64 {
	var v int64
	for s := 0; s < 64; s += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << s
		if c < 0x80 {
			if c&0x40 != 0 && s+7 < 64 {
				v |= -1 << (s + 7)
			}
			return v
		}
	}
	r.bad = true
	return 0
}

// locals moves past the declaration of a function's local variables.
func (r *reader) locals() {
	for n := r.uleb(); n > 0 && !r.bad; n-- {
		r.uleb()
		r.byte()
	}
}

func (r *reader) name() string { return string(r.bytes(int(r.uleb()))) }

func (r *reader) rest() []byte { return r.b[r.p:] }

func appendUleb(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendSleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Opcodes that rewrite looks for or writes.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI32Load      = 0x28
	opI64Load      = 0x29
	opI32Load8U    = 0x2d
	opI32Store     = 0x36
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32Eqz       = 0x45
	opI32LtS       = 0x48
	opI32LtU       = 0x49
	opI32GtS       = 0x4a
	opI32LeU       = 0x4d
	opI32GeU       = 0x4f
	opI64Eqz       = 0x50
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Mul       = 0x6c
	opI32And       = 0x71
	opI32Xor       = 0x73
	opI32Shl       = 0x74
	opI32ShrU      = 0x76
	opI64Sub       = 0x7d
	opI64And       = 0x83
	opI64Or        = 0x84
	opI64Xor       = 0x85
	opI32WrapI64   = 0xa7
	opPrefix       = 0xfc // before the next two
	opMemoryCopy   = 10
	opMemoryFill   = 11
	typeI32        = 0x7f
	typeI64        = 0x7e
	typeFunc       = 0x60
	blockVoid      = 0x40
	exportGlobal   = 3
)

// operands says what follows an opcode.
type operands byte

const (
	unknown    operands = iota // not in the examined build
	none                       // nothing
	one                        // a LEB128 number
	two                        // two of them
	table                      // a vector of numbers and one more
	types                      // a vector of types
	oneByte                    // one byte
	fourBytes                  // f32
	eightBytes                 // f64
	bulk                       // a second opcode
)

// operandsOf lists them for the one-byte opcodes of the examined build.
var operandsOf = func() (t [256]operands) {
	for _, x := range []struct {
		from, to int
		what     operands
	}{
		{0x00, 0x01, none}, {0x02, 0x04, one}, {0x05, 0x05, none}, {opEnd, opEnd, none}, {0x0c, 0x0d, one}, {0x0e, 0x0e, table},
		{0x0f, 0x0f, none}, {opCall, opCall, one}, {opCallIndirect, opCallIndirect, two}, {opDrop, 0x1b, none}, {0x1c, 0x1c, types},
		{opLocalGet, 0x26, one}, {0x28, 0x3e, two}, {0x3f, 0x40, oneByte}, {opI32Const, opI64Const, one}, {0x43, 0x43, fourBytes},
		{0x44, 0x44, eightBytes}, {opI32Eqz, 0xc4, none}, {0xd0, 0xd0, oneByte}, {0xd1, 0xd1, none}, {0xd2, 0xd2, one}, {0xfc, 0xfc, bulk},
	} {
		for op := x.from; op <= x.to; op++ {
			t[op] = x.what
		}
	}
	return t
}()

// skip moves past one instruction, its opcode included. An opcode that the
// examined build does not have is an error.
func (r *reader) skip() error {
	op := r.byte()
	switch operandsOf[op] {
	case unknown:
		return fmt.Errorf("unknown opcode %#x", op)
	case none:
	case one:
		r.uleb()
	case two:
		r.uleb()
		r.uleb()
	case table:
		for n := r.uleb() + 1; n > 0 && !r.bad; n-- {
			r.uleb()
		}
	case types:
		r.bytes(int(r.uleb()))
	case oneByte:
		r.byte()
	case fourBytes:
		r.bytes(4)
	case eightBytes:
		r.bytes(8)
	case bulk:
		return r.skipBulk()
	}
	return r.err()
}

// skipBulk moves past what follows the prefix 0xfc: saturating conversions and
// bulk memory.
func (r *reader) skipBulk() error {
	switch s := r.uleb(); s {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 8, 10, 12, 14: // memory.init, memory.copy, table.init, table.copy
		r.uleb()
		r.uleb()
	case 9, 11, 13, 15, 16, 17:
		r.uleb()
	default:
		return fmt.Errorf("unknown opcode 0xfc %d", s)
	}
	return r.err()
}

func (r *reader) err() error {
	if r.bad {
		return errors.New("cut instruction")
	}
	return nil
}
