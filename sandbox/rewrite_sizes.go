package sandbox

// noUsableSize is the body of js__malloc_usable_size in this build, and of no
// other function: it answers 0, as on every system without the call.
var noUsableSize = []byte{0, opI32Const, 0, opEnd}

// usableSize reads the size from the head of dlmalloc's chunk, 4 bytes before
// the allocation, as malloc_usable_size does there: the low three bits are
// flags, and the head itself does not count. Of a null pointer it is 0.
var usableSize = append(append([]byte{0, opLocalGet, 0, opI32Eqz, opIf, typeI32, opI32Const, 0, opElse,
	opLocalGet, 0, opI32Const, 4, opI32Sub, opI32Load, 2, 0, opI32Const}, appendSleb(nil, -8)...),
	opI32And, opI32Const, 4, opI32Sub, opEnd, opEnd)

// hashed is where map_hash_key multiplies the 32 bits that a number or an object
// has as a key of a Map or Set; its result's lowest bits choose the bucket. Those
// of small integers, as doubles, are all zero, and so is the product's: 3,000 of
// them share a handful of buckets. mixHash goes in after its first instruction.
var hashed = append(append([]byte{opI32WrapI64, opI32Const}, appendSleb(nil, 3163)...), opI32Mul)

// mixHash is the body of (x i32) -> i32: the finalizer of MurmurHash3, by which
// every bit of x changes every bit of the result.
var mixHash = func() []byte {
	shift := func(b []byte, n byte) []byte { // x ^ x>>n
		return append(b, opLocalGet, 0, opLocalGet, 0, opI32Const, n, opI32ShrU, opI32Xor)
	}
	multiply := func(b []byte, by int64) []byte {
		return append(appendSleb(append(b, opI32Const), by), opI32Mul, opLocalSet, 0)
	}
	b := multiply(shift([]byte{0}, 16), -0x7a143595) // 0x85ebca6b
	b = multiply(shift(b, 13), -0x3d4d51cb)          // 0xc2b2ae35
	return append(shift(b, 16), opEnd)
}()
