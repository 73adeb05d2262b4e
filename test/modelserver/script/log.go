package script

import (
	"encoding/json"
	"slices"
	"sync"
)

// Received is one request as it came in.
type Received struct {
	// Name is the script's, User the request's user.
	Name string `json:"name"`
	User string `json:"user,omitempty"`
	Path string `json:"path"`
	// Bearer is None, Expected or Other: the token itself is never kept.
	Bearer string `json:"bearer"`
	// Turn counts the turns of the script from 1; 0 when none was played.
	Turn int `json:"turn"`
	// Headers are the names of the request's headers, sorted.
	Headers []string `json:"headers"`
	// Problem is what was wrong with the request.
	Problem string          `json:"problem,omitempty"`
	Body    json.RawMessage `json:"body"`
}

// maxReceived bounds the log: the oldest entries go first.
const maxReceived = 10_000

// book holds the scripts, how far each was played, and what came in.
type book struct {
	mu       sync.Mutex
	scripts  map[string]Script
	place    map[place]*progress
	received []Received
}

// place is one reader of a script: runs that share a script by the path, but not
// their user, each hear it from its beginning.
type place struct{ name, user string }

// progress is the next turn, and how often it was refused with its status.
type progress struct{ turn, refused int }

func newBook() *book { return &book{scripts: map[string]Script{}, place: map[place]*progress{}} }

// play sets a script; whoever asks for it again hears it from its beginning.
func (b *book) play(name string, s Script) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scripts[name] = s
	for p := range b.place {
		if p.name == name {
			delete(b.place, p)
		}
	}
}

func (b *book) script(name string) (Script, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.scripts[name]
	return s, ok
}

// next returns the turn for the reader and its number from 1; 0 when there is none.
func (b *book) next(p place, s Script) (Turn, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.place[p]
	if at == nil {
		at = &progress{}
		b.place[p] = at
	}
	i := at.turn
	if i >= len(s.Turns) {
		if !s.RepeatLast || len(s.Turns) == 0 {
			return Turn{}, 0
		}
		i = len(s.Turns) - 1
	}
	t := s.Turns[i]
	if t.Times > 0 && at.refused < t.Times {
		at.refused++
		return t, i + 1
	}
	if t.Times > 0 {
		t.Status, t.RetryAfter = 0, ""
	}
	at.turn, at.refused = at.turn+1, 0
	return t, i + 1
}

func (b *book) record(r Received) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.received) == maxReceived {
		b.received = b.received[1:]
	}
	b.received = append(b.received, r)
}

// list returns what came in for a script, or for all.
func (b *book) list(name string) []Received {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(b.received), func(r Received) bool { return name != "" && r.Name != name })
	if out == nil {
		return []Received{}
	}
	return out
}
