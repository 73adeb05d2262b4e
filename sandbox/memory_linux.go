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
	pagemap *os.File // says which pages have content of their own
	sparse  []extent // used where the file could not be made
}

// newImage keeps the first size bytes of m.
func newImage(m *linearMemory, size int) *image {
	i := &image{fd: -1, size: size}
	i.pagemap, _ = os.Open("/proc/self/pagemap") // without it some things are slower
	if err := i.fill(m.b[:size]); err != nil {
		i.close()
		i.sparse = extents(append([]byte(nil), m.b[:size]...))
	}
	return i
}

// fill writes the pages that are not all zero; the file is as good as zero
// elsewhere. A page that nobody has touched is not even looked at.
func (i *image) fill(b []byte) (err error) {
	if i.fd, err = unix.MemfdCreate("codeact-snapshot", unix.MFD_CLOEXEC); err != nil {
		return err
	}
	if err := unix.Ftruncate(i.fd, int64(i.size)); err != nil {
		return err
	}
	page, own := os.Getpagesize(), i.ownPages(b)
	for off := 0; off < len(b); off += page {
		if own != nil && !own[off/page] {
			continue
		}
		if err := writeAt(i.fd, b[off:min(off+page, len(b))], int64(off)); err != nil {
			return err
		}
	}
	i.view, err = unix.Mmap(i.fd, 0, i.size, unix.PROT_READ, unix.MAP_SHARED)
	return err
}

func writeAt(fd int, b []byte, off int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, off)
		if err != nil {
			return err
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// ownPages says of each page of b, which begins one, whether it has content of
// its own: in memory and not a file's, or swapped out (proc_pid_pagemap(5)). It is
// nil if the kernel does not say.
func (i *image) ownPages(b []byte) []bool {
	const present, swapped, file, entry = 1 << 63, 1 << 62, 1 << 61, 8
	page := os.Getpagesize()
	if i.pagemap == nil || len(b)%page != 0 {
		return nil
	}
	entries := make([]byte, len(b)/page*entry)
	if _, err := i.pagemap.ReadAt(entries, int64(uintptr(unsafe.Pointer(&b[0]))/uintptr(page)*entry)); err != nil {
		return nil
	}
	own := make([]bool, len(b)/page)
	for n := range own {
		e := binary.LittleEndian.Uint64(entries[n*entry:])
		own[n] = e&swapped != 0 || e&present != 0 && e&file == 0
	}
	return own
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
	own := i.ownPages(b)
	if own == nil {
		return unix.Madvise(b, unix.MADV_DONTNEED)
	}
	page := os.Getpagesize()
	for n := range own {
		if own[n] {
			copy(b[n*page:(n+1)*page], i.view[n*page:])
		}
	}
	return nil
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
