package recipefile

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// formats are how a file of tests may be written, by the end of its name.
var formats = map[string]func(text []byte) (json.RawMessage, error){
	".json": func(text []byte) (json.RawMessage, error) { return text, nil },
	".yaml": fromYAML,
	".yml":  fromYAML,
	".toml": fromTOML,
}

// tests reads a file of tests, or every one of a folder.
func (s *snapshot) tests(name string) ([]contract.Fixture, *Problem) {
	info, err := s.l.root.Stat(name)
	if err != nil {
		return nil, s.l.failed(name, err)
	}
	if !info.IsDir() {
		if formats[path.Ext(name)] == nil {
			return nil, problem(s.l.shown(name), "tests are written in a file that ends with .json, .yaml, .yml or .toml")
		}
		return s.testFile(name)
	}
	names, bad := s.list(name)
	if bad != nil {
		return nil, bad
	}
	var out []contract.Fixture
	for _, n := range names {
		if formats[path.Ext(n)] == nil {
			continue
		}
		more, bad := s.testFile(path.Join(name, n))
		if bad != nil {
			return nil, bad
		}
		out = append(out, more...)
		if err := contract.CheckFixtures(out); err != nil {
			return nil, problem(s.l.shown(path.Join(name, n)), "%v", err)
		}
	}
	return out, nil
}

func (s *snapshot) testFile(name string) ([]contract.Fixture, *Problem) {
	f, bad := s.read(name, contract.MaxFixtureBytes)
	if bad != nil {
		return nil, bad
	}
	ext := path.Ext(name)
	text, err := formats[ext](f.Text)
	if err != nil {
		if ext == ".toml" {
			return nil, tomlProblem(f, err)
		}
		return nil, problem(f.Path, "%v", err)
	}
	out, err := contract.DecodeFixtures(text, strings.TrimSuffix(path.Base(name), ext))
	if err != nil {
		return nil, problem(f.Path, "%v", err)
	}
	return out, nil
}

func fromYAML(text []byte) (json.RawMessage, error) { return yaml.YAMLToJSONStrict(text) }

func fromTOML(text []byte) (json.RawMessage, error) {
	var x map[string]any
	if err := toml.Unmarshal(text, &x); err != nil {
		return nil, err
	}
	if err := onlyJSON(x); err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

// onlyJSON refuses what TOML has and JSON has not.
func onlyJSON(x any) error {
	switch v := x.(type) {
	case map[string]any:
		for k, e := range v {
			if err := onlyJSON(e); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	case []any:
		for _, e := range v {
			if err := onlyJSON(e); err != nil {
				return err
			}
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v is no number of JSON", v)
		}
	case string, bool, int64:
	case time.Time, toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		return fmt.Errorf("a time is no value of JSON; write it between quotation marks")
	default:
		return fmt.Errorf("%T is no value of JSON", v)
	}
	return nil
}
