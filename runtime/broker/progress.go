package broker

import (
	"math"
	"sync"
	"time"
)

// ProgressEvery is the shortest time between two observed reports of one call's
// progress; what comes in between is dropped.
const ProgressEvery = time.Second

// meter lets a tool's reports of its progress through, as long as its call lasts.
type meter struct {
	mu   sync.Mutex
	last time.Time
	over bool
}

// report is Request.Progress: it may be called by any goroutine of the backend.
func (fl *flight) report(done, total float64) {
	if !plain(done) || !plain(total) {
		return
	}
	now := fl.b.cfg.Now()
	fl.meter.mu.Lock()
	defer fl.meter.mu.Unlock() // held, so that nothing is told behind the end
	if fl.meter.over || !fl.meter.last.IsZero() && now.Sub(fl.meter.last) < ProgressEvery {
		return
	}
	fl.meter.last = now
	m := fl.moment()
	m.Arguments, m.Progress = nil, &Progress{Done: done, Total: total}
	fl.b.hooks.observe(fl.inner, m)
}

func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}

func plain(x float64) bool { return x >= 0 && !math.IsInf(x, 0) && !math.IsNaN(x) }
