package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

const (
	// maxText bounds what a tool's own text puts into a message, in bytes.
	maxText = 512
	// maxSecrets is how many credentials a session remembers: the present one, and
	// those that a slow server may still hold.
	maxSecrets = 4
)

// sent is one credential that the server was sent.
type sent struct {
	token  string
	finder egress.Secret
}

// knows keeps a credential that is sent.
func (s *session) knows(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.secrets); n == 0 || s.secrets[n-1].token != token {
		s.secrets = append(s.secrets[max(0, n-maxSecrets+1):], sent{token, egress.NewSecret(token)})
	}
}

// shows reports whether text holds a credential that the server was sent.
func (s *session) shows(text []byte) bool {
	s.mu.Lock()
	secrets := s.secrets
	s.mu.Unlock()
	for _, x := range secrets {
		if x.finder.In(text) {
			return true
		}
	}
	return false
}

// clean makes a tool's own text fit for a message: short, in one line, and
// nothing at all when it shows a credential.
func (s *session) clean(text string, most int) string {
	if s.shows([]byte(text)) {
		return ""
	}
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
	return contract.Truncate(strings.TrimSpace(text), most)
}
