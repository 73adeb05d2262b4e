package sandbox

import "fmt"

// One instruction of WebAssembly can fill or copy the whole heap, and a program
// can ask for that in a line: without more, `a.fill(1)` on 50 MB costs a few
// units of fuel and 5 ms, on pages that are new to the kernel fifty times that,
// so that minutes of work pass between two polls. The rewriting puts calls of
// two functions in the place of these instructions, which do the same in pieces
// and spend fuel for each.

const (
	// bulkUnit is how many bytes one unit of fuel fills or copies: 2 to the power
	// of this. It takes about as long as an iteration of a loop.
	bulkUnit = 6
	// bulkPiece is the most bytes that are filled or copied at once.
	bulkPiece = 256 << 10
	// bulkSites is how many instructions of the examined build fill or copy
	// memory: they are in memcpy, memset and memmove.
	bulkSites = 3
)

// bulkPatches replaces them and counts how often.
type bulkPatches struct {
	fill, copy uint64 // indexes of bulkFill and bulkCopy
	found      int
}

// instead returns what replaces the instruction, or nil if it may stay.
func (p *bulkPatches) instead(instruction []byte) []byte {
	if instruction[0] != opPrefix {
		return nil
	}
	f := p.fill
	switch instruction[1] {
	case opMemoryFill:
	case opMemoryCopy:
		f = p.copy
	default:
		return nil
	}
	p.found++
	return appendUleb([]byte{opCall}, f)
}

func (p *bulkPatches) check() error {
	if p.found != bulkSites {
		return fmt.Errorf("%d instructions fill or copy memory, want %d", p.found, bulkSites)
	}
	return nil
}

// The parameters and variables of both functions. from is the byte to fill with.
const (
	bulkTo    = iota // where to
	bulkFrom         // where from
	bulkLeft         // how many bytes are left
	bulkNow          // the size of the piece
	bulkUnits        // what is still to be paid for it
)

// bulkHead begins both functions, up to where a piece of bulkNow bytes is paid:
// now = min(left, bulkPiece); units = now >> bulkUnit;
// while units > fuel { units -= fuel; fuel = 0; poll() }; fuel -= units.
func bulkHead(poll uint64) []byte {
	piece := appendSleb([]byte{opI32Const}, bulkPiece)
	b := append([]byte{1, 2, typeI32, opLoop, blockVoid, opLocalGet, bulkLeft}, piece...)
	b = append(append(b, opI32LtU, opIf, typeI32, opLocalGet, bulkLeft, opElse), piece...)
	b = append(b, opEnd, opLocalTee, bulkNow, opI32Const, bulkUnit, opI32ShrU, opLocalSet, bulkUnits,
		opBlock, blockVoid, opLoop, blockVoid,
		opLocalGet, bulkUnits, opGlobalGet, globalFuel, opI32LeU, opBrIf, 1,
		opLocalGet, bulkUnits, opGlobalGet, globalFuel, opI32Sub, opLocalSet, bulkUnits,
		opI32Const, 0, opGlobalSet, globalFuel, opCall)
	return append(appendUleb(b, poll), opBr, 0, opEnd, opEnd,
		opGlobalGet, globalFuel, opLocalGet, bulkUnits, opI32Sub, opGlobalSet, globalFuel,
		opLocalGet, bulkLeft, opLocalGet, bulkNow, opI32Sub, opLocalSet, bulkLeft)
}

// bulkTail goes round while something is left.
var bulkTail = []byte{opLocalGet, bulkLeft, opBrIf, 0, opEnd, opEnd}

// move is variable += bulkNow.
func move(variable byte) []byte {
	return []byte{opLocalGet, variable, opLocalGet, bulkNow, opI32Add, opLocalSet, variable}
}

// bulkFill is the body of (to, byte, size i32) -> (), which does memory.fill.
func bulkFill(poll uint64) []byte {
	b := append(bulkHead(poll), opLocalGet, bulkTo, opLocalGet, bulkFrom, opLocalGet, bulkNow, opPrefix, opMemoryFill, 0)
	return append(append(b, move(bulkTo)...), bulkTail...)
}

// bulkCopy is the body of (to, from, size i32) -> (), which does memory.copy. The
// pieces are taken from the end if the places may overlap to that side.
func bulkCopy(poll uint64) []byte {
	b := append(bulkHead(poll), opLocalGet, bulkTo, opLocalGet, bulkFrom, opI32LeU, opIf, blockVoid,
		opLocalGet, bulkTo, opLocalGet, bulkFrom, opLocalGet, bulkNow, opPrefix, opMemoryCopy, 0, 0)
	b = append(append(append(b, move(bulkTo)...), move(bulkFrom)...), opElse,
		opLocalGet, bulkTo, opLocalGet, bulkLeft, opI32Add, opLocalGet, bulkFrom, opLocalGet, bulkLeft, opI32Add,
		opLocalGet, bulkNow, opPrefix, opMemoryCopy, 0, 0, opEnd)
	return append(b, bulkTail...)
}
