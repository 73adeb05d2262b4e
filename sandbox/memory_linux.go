//go:build linux && !sandbox_gomem

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
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
	fd      int
	size    int
	view    []byte   // the file, read-only
	pagemap *os.File // says which pages are a process's own (proc_pid_pagemap(5))
	sparse  []extent // used where the file could not be made
}

func newImage(b []byte) *image {
	i := &image{fd: -1, size: len(b)}
	if err := i.fill(b); err != nil {
		i.close()
		i.sparse = extents(b)
		return i
	}
	i.pagemap, _ = os.Open("/proc/self/pagemap") // without it reset is slower
	return i
}

func (i *image) fill(b []byte) (err error) {
	if i.fd, err = unix.MemfdCreate("codeact-snapshot", unix.MFD_CLOEXEC); err != nil {
		return err
	}
	for off := 0; off < len(b); {
		n, err := unix.Pwrite(i.fd, b[off:], int64(off))
		if err != nil {
			return err
		}
		off += n
	}
	i.view, err = unix.Mmap(i.fd, 0, i.size, unix.PROT_READ, unix.MAP_SHARED)
	return err
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

// reset makes m what restore has made it: it copies the image over the pages that
// the kernel says are no longer the file's. Having the kernel drop them instead
// interrupts the other processors, and the next execution has a page fault for
// each: about 25 times as dear.
func (i *image) reset(m *linearMemory) error {
	b := m.b[:i.size]
	if i.fd < 0 {
		clear(b)
		writeExtents(b, i.sparse)
		return nil
	}
	page := os.Getpagesize()
	entries := make([]byte, i.size/page*8)
	if i.pagemap == nil || i.size%page != 0 {
		return unix.Madvise(b, unix.MADV_DONTNEED)
	}
	if _, err := i.pagemap.ReadAt(entries, int64(uintptr(unsafe.Pointer(&b[0]))/uintptr(page)*8)); err != nil {
		return unix.Madvise(b, unix.MADV_DONTNEED)
	}
	for off := 0; off < i.size; off += page {
		if ownPage(binary.LittleEndian.Uint64(entries[off/page*8:])) {
			copy(b[off:off+page], i.view[off:])
		}
	}
	return nil
}

// ownPage reports whether an entry of the pagemap is that of a page with content
// of its own: in memory and not the file's, or swapped out.
func ownPage(entry uint64) bool {
	const present, swapped, file = 1 << 63, 1 << 62, 1 << 61
	return entry&swapped != 0 || entry&present != 0 && entry&file == 0
}

func (i *image) close() {
	if i.view != nil {
		_ = unix.Munmap(i.view)
		i.view = nil
	}
	if i.pagemap != nil {
		_ = i.pagemap.Close()
		i.pagemap = nil
	}
	if i.fd >= 0 {
		_ = unix.Close(i.fd)
		i.fd = -1
	}
}
