package sandbox

import (
	"bytes"
	"fmt"
)

// JSON.parse and JSON.stringify take a string character by character, 4 to 6 ns
// each, and everything that crosses the boundary passes both. The rewriting lets
// them take eight at once where nothing needs attention: at the head of the loop
// over a string's characters, plainRun copies the plain ones that lie ahead.

// Places in the StringBuffer of QuickJS, by which both functions build a string.
const (
	bufferString = 4  // the string that grows
	bufferLen    = 8  // how many characters it has
	bufferSize   = 12 // how many fit
	bufferWide   = 16 // not 0: of 16 bits each
	stringFlags  = 11 // of a string: the byte whose bit 5 says that it is a slice
	stringData   = 20 // of a string that is no slice: its characters
)

// growBuffer is string_buffer_realloc(buffer, length, 0); an answer that is not 0
// means that it failed, which the buffer remembers.
const growBuffer = 548

// patch is code that goes in at the head of one loop.
type patch struct {
	name string
	// at is the beginning of the loop, its opcode included. No other loop of the
	// module begins like this.
	at []byte
	// code calls plainRun, whose index follows it, and then end.
	code, end []byte
}

var jsonPatches = []patch{
	{ // js_json_parse's string: local 7 is the next byte, local 6+52 the buffer
		name: "JSON.parse",
		at: []byte{opLoop, blockVoid, opBlock, blockVoid, opBlock, blockVoid, opBlock, blockVoid, opBlock, blockVoid, opBlock, blockVoid, opBlock, blockVoid,
			opLocalGet, 7, opLocalGet, 0, opI32Load, 2, 72, opLocalTee, 5, opI32GeU},
		// if len&7 == 0 { next += plainRun(buffer, next, end - next) }
		code: []byte{opLocalGet, 6, opI32Load, 2, 52 + bufferLen, opI32Const, 7, opI32And, opI32Eqz, opIf, blockVoid,
			opLocalGet, 6, opI32Const, 52, opI32Add, opLocalGet, 7, opLocalGet, 0, opI32Load, 2, 72, opLocalGet, 7, opI32Sub, opCall},
		end: []byte{opLocalGet, 7, opI32Add, opLocalSet, 7, opEnd},
	},
	{ // JS_ToQuotedString: local 12 is the index, 6 the length, 5 the characters
		// (not of a slice), 9 the string's head with its flags, local 3+40 the buffer
		name: "JSON.stringify",
		at:   append(append([]byte{opLoop, blockVoid, opLocalGet, 9, opI64Const}, appendSleb(nil, sliceFlag)...), opI64And, opLocalSet, 13, opBlock, typeI32),
		// if index&7 == 0 && !wide && !slice { index += plainRun(buffer, characters + index, length - 1 - index) }
		// The loop has a character to take after that.
		code: append(append([]byte{opLocalGet, 12, opI32Const, 7, opI32And, opI32Eqz, opIf, blockVoid,
			opLocalGet, 9, opI64Const}, appendSleb(nil, sliceFlag|wideFlag)...), opI64And, opI64Eqz, opIf, blockVoid,
			opLocalGet, 3, opI32Const, 40, opI32Add, opLocalGet, 5, opLocalGet, 12, opI32Add, opLocalGet, 6, opI32Const, 1, opI32Sub, opLocalGet, 12, opI32Sub, opCall),
		end: []byte{opLocalGet, 12, opI32Add, opLocalSet, 12, opEnd, opEnd},
	},
}

// Flags in the 64 bits at offset 4 of a string; its length is in the lowest 31.
const (
	wideFlag  = 1 << 31
	sliceFlag = 1 << 61
)

// plainRun is the body of (buffer, next, most i32) -> i32. It appends those of
// the next characters that are plain, eight at a time and at most most, to a
// buffer of bytes, and answers how many. A plain one is 0x20 to 0x7F, neither
// quote nor backslash: JSON and the guest's string have it as the same byte.
func plainRun(spend []byte) []byte {
	const buffer, next, most, n, word, other, str = 0, 1, 2, 3, 4, 5, 6
	each := func(b int64) []byte { return appendSleb([]byte{opI64Const}, b*0x0101010101010101) }
	// zeroIn(v): a bit is set if a byte of v is zero: (v - 0x01…) & ^v
	zeroIn := func(c int64) []byte {
		b := append([]byte{opLocalGet, word}, each(c)...)
		b = append(b, opI64Xor, opLocalTee, other)
		b = append(append(b, each(1)...), opI64Sub, opLocalGet, other, opI64Const, 0x7f, opI64Xor, opI64And)
		return b
	}
	b := []byte{3, 1, typeI32, 2, typeI64, 1, typeI32} // n; word, other; str
	b = append(b, opBlock, blockVoid, opLocalGet, buffer, opI32Load, 2, bufferWide, opBrIf, 0, opLoop, blockVoid)
	b = append(b, spend...)
	b = append(b, opLocalGet, n, opI32Const, 8, opI32Add, opLocalGet, most, opI32GtS, opBrIf, 1)
	b = append(b, opLocalGet, next, opLocalGet, n, opI32Add, opI64Load, 0, 0, opLocalSet, word)
	// below 0x20: (word - 0x20…) & ^word; above 0x7F: word
	b = append(append(append(b, opLocalGet, word), each(0x20)...), opI64Sub, opLocalGet, word, opI64Const, 0x7f, opI64Xor, opI64And, opLocalGet, word, opI64Or)
	b = append(append(b, zeroIn('"')...), opI64Or)
	b = append(append(b, zeroIn('\\')...), opI64Or)
	b = append(appendSleb(append(b, opI64Const), -0x7f7f7f7f7f7f7f80), opI64And, opI64Eqz, opI32Eqz, opBrIf, 1) // 0x80…
	b = append(b, opLocalGet, n, opI32Const, 8, opI32Add, opLocalSet, n, opBr, 0, opEnd, opEnd)
	answer := func(b []byte, when ...byte) []byte { // if when { return 0 }
		return append(append(b, when...), opIf, blockVoid, opI32Const, 0, opReturn, opEnd)
	}
	b = answer(b, opLocalGet, n, opI32Eqz)
	length := []byte{opLocalGet, buffer, opI32Load, 2, bufferLen, opLocalGet, n, opI32Add}
	b = append(append(b, length...), opLocalGet, buffer, opI32Load, 2, bufferSize, opI32GtS, opIf, blockVoid, opLocalGet, buffer)
	b = append(append(b, length...), opI32Const, 0, opCall)
	b = append(answer(appendUleb(b, growBuffer)), opEnd)
	b = answer(append(b, opLocalGet, buffer, opI32Load, 2, bufferString, opLocalTee, str, opI32Load8U, 0, stringFlags, opI32Const, 0x20, opI32And))
	b = append(b, opLocalGet, str, opI32Const, stringData, opI32Add, opLocalGet, buffer, opI32Load, 2, bufferLen, opI32Add,
		opLocalGet, next, opLocalGet, n, opPrefix, opMemoryCopy, 0, 0)
	b = append(append(append(b, opLocalGet, buffer), length...), opI32Store, 2, bufferLen, opLocalGet, n, opEnd)
	return b
}

// patches inserts jsonPatches, and counts what was changed at known places.
type patches struct {
	plainRun      uint64
	found         [2]int
	sizes, hashes int
	bulk          bulkPatches
}

// insertAt returns what goes in at the head of the loop that rest begins with.
func (p *patches) insertAt(rest []byte) []byte {
	for i, x := range jsonPatches {
		if bytes.HasPrefix(rest, x.at) {
			p.found[i]++
			return append(appendUleb(append([]byte(nil), x.code...), p.plainRun), x.end...)
		}
	}
	return nil
}

func (p *patches) check() error {
	if p.sizes != 1 {
		return fmt.Errorf("%d functions could be malloc_usable_size", p.sizes)
	}
	if p.hashes != 2 {
		return fmt.Errorf("%d places could be those of map_hash_key", p.hashes)
	}
	for i, n := range p.found {
		if n != 1 {
			return fmt.Errorf("%d loops could be that of %s", n, jsonPatches[i].name)
		}
	}
	return p.bulk.check()
}
