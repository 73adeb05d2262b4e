//go:build linux && !sandbox_gomem

package sandbox

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// linearMemory is one execution's memory: one reservation of address space, so
// that growth never copies and closing gives everything back at once. The
// kernel only hands out the pages that are touched.
type linearMemory struct {
	b     []byte
	limit uint64
}

// newLinearMemory reserves limit bytes.
func newLinearMemory(limit uint64) (*linearMemory, error) {
	b, err := unix.Mmap(-1, 0, int(limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", limit, err)
	}
	return &linearMemory{b: b, limit: limit}, nil
}

// Allocate implements experimental.MemoryAllocator.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. Beyond the limit it panics:
// a nil would become an exception that the program can catch.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		panic(errHeap)
	}
	return m.b[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() {
	if m.b != nil {
		_ = unix.Munmap(m.b) // the only failure is a bad range, which b is not
		m.b = nil
	}
}

// image is the snapshot that every execution starts from, kept in an anonymous
// file that is mapped copy-on-write: a fresh execution pays for the pages it
// changes and for nothing else.
type image struct {
	fd     int
	size   int
	sparse []extent // used where the file could not be made

	learn sync.Once
	hot   []extent // what nearly every execution changes
}

// maxHotBytes bounds what reset copies; the rest is dropped.
const maxHotBytes = 512 << 10

func newImage(b []byte) *image {
	fd, err := unix.MemfdCreate("codeact-snapshot", unix.MFD_CLOEXEC)
	if err != nil {
		return &image{fd: -1, size: len(b), sparse: extents(b)}
	}
	for off := 0; off < len(b); {
		n, err := unix.Pwrite(fd, b[off:], int64(off))
		if err != nil {
			_ = unix.Close(fd)
			return &image{fd: -1, size: len(b), sparse: extents(b)}
		}
		off += n
	}
	return &image{fd: fd, size: len(b)}
}

// restore puts the image at the start of m, which is at least as large.
func (i *image) restore(m *linearMemory) error {
	if i.fd < 0 {
		writeExtents(m.b, i.sparse)
		return nil
	}
	_, err := unix.MmapPtr(i.fd, 0, unsafe.Pointer(&m.b[0]), uintptr(i.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map the snapshot: %w", err)
	}
	return nil
}

// reset makes m what restore has made it. The pages that nearly every execution
// changes are copied from the image; copying one takes a twentieth of the time
// that a page fault takes to do it. All others are dropped: whoever looks at them
// next gets the image's again.
func (i *image) reset(m *linearMemory) error {
	b := m.b[:i.size]
	if i.fd < 0 {
		clear(b)
		writeExtents(b, i.sparse)
		return nil
	}
	i.learn.Do(func() { i.hot = i.changed(b) })
	from := 0
	for _, x := range i.hot {
		if err := drop(b[from:x.off]); err != nil {
			return err
		}
		from = x.off + copy(b[x.off:], x.data)
	}
	return drop(b[from:])
}

func drop(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return unix.Madvise(b, unix.MADV_DONTNEED)
}

// changed lists what the image has where b differs from it, by pages. Short gaps
// are filled, because every further extent costs a call of the kernel.
func (i *image) changed(b []byte) []extent {
	const page, gap = 4096, 4 * 4096
	was := make([]byte, i.size)
	if n, err := unix.Pread(i.fd, was, 0); err != nil || n != len(was) {
		return nil
	}
	var out []extent
	total := 0
	for off := 0; off < len(was) && total < maxHotBytes; off += page {
		end := min(off+page, len(was))
		if bytes.Equal(b[off:end], was[off:end]) {
			continue
		}
		if last := len(out) - 1; last >= 0 && off-(out[last].off+len(out[last].data)) <= gap {
			total += end - out[last].off - len(out[last].data)
			out[last].data = was[out[last].off:end]
			continue
		}
		total += end - off
		out = append(out, extent{off, was[off:end]})
	}
	for n := range out { // was itself is not kept
		out[n].data = bytes.Clone(out[n].data)
	}
	return out
}

func (i *image) close() {
	if i.fd >= 0 {
		_ = unix.Close(i.fd)
		i.fd = -1
	}
}
