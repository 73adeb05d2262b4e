package loop

import (
	"io"
	"sync"
	"time"
)

const (
	// maxUnread bounds the lines that wait for a slow reader, in bytes.
	maxUnread = 4 << 20
	// flushFor bounds the wait for a slow reader at the end of a run.
	flushFor = 2 * time.Second
)

// live writes lines one after another, and lets nobody wait for that: a stream that
// nobody reads must stop neither the run nor its transcript.
type live struct {
	w io.Writer
	// lost words how many lines are missing where it stands.
	lost func(lines int64) []byte

	mu      sync.Mutex
	lines   [][]byte
	unread  int
	dropped int64
	// idle is closed once nothing is left to write; nil while nothing is.
	idle chan struct{}
}

func (l *live) put(line []byte) {
	if line == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unread+len(line) > maxUnread {
		l.dropped++
		return
	}
	if l.dropped > 0 {
		l.lines, l.dropped = append(l.lines, l.lost(l.dropped)), 0
	}
	l.lines = append(l.lines, line)
	l.unread += len(line)
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.write(l.idle)
	}
}

func (l *live) write(idle chan struct{}) {
	defer close(idle)
	for {
		l.mu.Lock()
		if len(l.lines) == 0 {
			if l.dropped == 0 {
				l.idle = nil
				l.mu.Unlock()
				return
			}
			l.lines, l.dropped = append(l.lines, l.lost(l.dropped)), 0
		}
		line := l.lines[0]
		l.lines = l.lines[1:]
		l.mu.Unlock()
		_, _ = l.w.Write(line)
		l.mu.Lock()
		l.unread = max(0, l.unread-len(line))
		l.mu.Unlock()
	}
}

// flush waits until every line is written, for flushFor at most.
func (l *live) flush() {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return
	}
	t := time.NewTimer(flushFor)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}
