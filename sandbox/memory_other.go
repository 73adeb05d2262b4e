//go:build !linux || sandbox_gomem

package sandbox

import "github.com/tetratelabs/wazero/experimental"

// linearMemory is one execution's memory, on the Go heap.
type linearMemory struct {
	b     []byte
	limit uint64
}

func newLinearMemory(limit uint64) (*linearMemory, error) { return &linearMemory{limit: limit}, nil }

// Allocate implements experimental.MemoryAllocator.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. Beyond the limit it panics:
// a nil would become an exception that the program can catch.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		panic(errHeap)
	}
	if size > uint64(cap(m.b)) {
		b := make([]byte, size, min(max(size, 2*uint64(cap(m.b))), m.limit))
		copy(b, m.b)
		m.b = b
	}
	m.b = m.b[:size]
	return m.b
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() { m.b = nil }

// image is the snapshot that every execution starts from.
type image struct {
	size   int
	sparse []extent
}

// newImage keeps the first size bytes of m.
func newImage(m *linearMemory, size int) *image {
	return &image{size: size, sparse: extents(append([]byte(nil), m.b[:size]...))}
}

func (i *image) restore(m *linearMemory) error {
	writeExtents(m.b, i.sparse)
	return nil
}

// reset makes m what restore has made it.
func (i *image) reset(m *linearMemory) error {
	clear(m.b[:i.size])
	return i.restore(m)
}

func (i *image) close() {}
