package recipefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// loader reads one root. Nothing outside of it is ever opened, whatever paths and
// links say.
type loader struct {
	ctx   context.Context
	root  *os.Root
	shown func(name string) string // a path in the root as people know it
	out   *Root
	// listed is the root's listing as it was first read.
	listed string
	// between is called after a recipe was read and before it is read again.
	between func(dir string)
}

// dirs are the folders of the root that hold a recipe, in the order of their names.
func (l *loader) dirs() ([]string, *Problem) {
	var bad *Problem
	if l.listed, bad = l.list("."); bad != nil {
		return nil, bad
	}
	var out []string
	for _, name := range split(l.listed) {
		_, err := l.root.Lstat(name + "/" + ManifestName)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			// A link that leads nowhere, or out of the root, could be a recipe.
			if info, lerr := l.root.Lstat(name); lerr != nil || info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
			if _, serr := l.root.Stat(name); serr == nil {
				continue
			}
		}
		out = append(out, name)
	}
	if len(out) > MaxRecipes {
		return nil, problem(l.shown("."), "the folder holds %d recipes, more than %d", len(out), MaxRecipes)
	}
	return out, nil
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, "\x00")
}

// list returns the names in a folder, sorted, with a NUL between two.
func (l *loader) list(dir string) (string, *Problem) {
	f, err := l.root.Open(dir)
	if err != nil {
		return "", l.failed(dir, err)
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", l.failed(dir, err)
	}
	if len(entries) > MaxEntries {
		return "", problem(l.shown(dir), "the folder has more than %d entries", MaxEntries)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return strings.Join(names, "\x00"), nil
}

// snapshot is what was read of one recipe: files and listings by their path.
type snapshot struct {
	l     *loader
	files map[string]readFile
}

type readFile struct {
	text   []byte
	most   int64
	listed bool
}

// read reads a file of at most so many bytes.
func (s *snapshot) read(name string, most int64) (*File, *Problem) {
	text, bad := s.l.file(name, most)
	if bad != nil {
		return nil, bad
	}
	s.files[name] = readFile{text: text, most: most}
	f := &File{Path: s.l.shown(name), Text: text}
	return f, f.judge()
}

func (s *snapshot) list(dir string) ([]string, *Problem) {
	names, bad := s.l.list(dir)
	if bad != nil {
		return nil, bad
	}
	s.files[dir] = readFile{text: []byte(names), listed: true}
	return split(names), nil
}

// holds reads everything a second time. Of a folder that is just being written,
// an author or a checkout would otherwise have a recipe that never was.
func (s *snapshot) holds() *Problem {
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		was := s.files[name]
		var now []byte
		var bad *Problem
		if was.listed {
			var names string
			names, bad = s.l.list(name)
			now = []byte(names)
		} else {
			now, bad = s.l.file(name, was.most)
		}
		if bad != nil || !bytes.Equal(was.text, now) {
			return problem(s.l.shown(name), "it changed while it was read; read it again")
		}
	}
	return nil
}

// file reads one regular file. The name may lead over links, but not out of the root.
func (l *loader) file(name string, most int64) ([]byte, *Problem) {
	info, err := l.root.Stat(name)
	if err != nil {
		return nil, l.failed(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, problem(l.shown(name), "it is no regular file")
	}
	f, err := l.root.OpenFile(name, reading, 0)
	if err != nil {
		return nil, l.failed(name, err)
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return nil, l.failed(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, problem(l.shown(name), "it is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(&patient{l.ctx, f}, most+1))
	if err != nil {
		return nil, l.failed(name, err)
	}
	if int64(len(text)) > most {
		return nil, problem(l.shown(name), "it has more than %d bytes", most)
	}
	return text, nil
}

// patient reads until its context ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

func (l *loader) failed(name string, err error) *Problem {
	p := problem(l.shown(name), "")
	var pe *fs.PathError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		p.Message = fmt.Sprintf("the recipes could not be read within %s", Preparation)
	case errors.Is(err, fs.ErrNotExist):
		p.Message = "there is no such file"
	case errors.As(err, &pe):
		p.Message = pe.Err.Error()
	default:
		p.Message = err.Error()
	}
	return p
}

// byteOrderMark is what some editors put before UTF-8.
const byteOrderMark = "\ufeff"

func (f *File) judge() *Problem {
	p := &Problem{Place: Place{Path: f.Path}}
	if bytes.HasPrefix(f.Text, []byte(byteOrderMark)) {
		p.Message = "it begins with a byte order mark; save it as UTF-8 without one"
		return p
	}
	if utf8.Valid(f.Text) {
		return nil
	}
	at := 0
	for r, n := utf8.DecodeRune(f.Text); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRune(f.Text[at:]) {
		at += n
	}
	p.Line, p.Column = f.position(at)
	p.Message = "it is not UTF-8"
	return p
}

// position turns a byte offset into line and column.
func (f *File) position(at int) (line, column int) {
	before := f.Text[:min(at, len(f.Text))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// contained says what is wrong with a path in a manifest: it must name something
// below the recipe's own folder, and be spelled in one way only.
func contained(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case len(name) > MaxPathBytes:
		return fmt.Errorf("has more than %d bytes", MaxPathBytes)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return errors.New("has a character that no path may have")
	case strings.ContainsRune(name, '\\'):
		return errors.New("has a backslash; write / between folders")
	case strings.HasPrefix(name, "/"):
		return errors.New("is absolute; it is seen from the recipe's folder")
	case path.Clean(name) != name || name == "." || !filepath.IsLocal(filepath.FromSlash(name)):
		return errors.New("has an empty segment, . or ..; it names something below the recipe's folder")
	}
	return nil
}

// at is a problem at a place of the file.
func (f *File) at(line, column int, format string, args ...any) *Problem {
	return &Problem{
		Place: Place{Path: f.Path, Line: line, Column: column}, Text: f.Text,
		Message: contract.Truncate(fmt.Sprintf(format, args...), contract.MaxMessageBytes),
	}
}
