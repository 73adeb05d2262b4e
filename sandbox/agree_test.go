package sandbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// quickJSVerdict asks QuickJS alone: "" if it compiles the source.
func quickJSVerdict(t *testing.T, e *Engine, source string) string {
	t.Helper()
	ctx := context.Background()
	in, err := e.fresh(ctx, defaultHeapCeiling, defaultStackCeiling)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	x := &execution{engine: e, in: in, limits: withDefaults(contract.Limits{}), parent: ctx, ctx: ctx}
	_, err = in.eval(ctx, in.file, source, evalStrict|evalCompileOnly)
	if thrown, ok := errors.AsType[*errThrown](err); ok {
		_, err = x.answer(ctx, opDescribe, thrown.value, 0, contract.ReasonSyntaxError)
	}
	if err != nil {
		return x.faultOf(err).Message
	}
	return ""
}

// checkVerdict is the same for the static check; judged is false if the source
// is refused for another reason than its syntax.
func checkVerdict(source string) (verdict string, judged bool) {
	_, err := check.Source(source, 1<<20)
	f, ok := contract.AsFault(err)
	if !ok {
		return "", true
	}
	return f.Message, f.Reason == contract.ReasonSyntaxError
}

// grammar returns the cases of the static check: the source, and whether
// QuickJS is known to judge otherwise.
func grammar(t testing.TB) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("check/testdata/grammar.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "#") {
			cases[strings.ReplaceAll(line[19:], "⏎", "\n")] = line[17] == '!'
		}
	}
	return cases
}

// TestCheckAgreesWithQuickJS: what the check accepts must compile, and what
// compiles must not be refused, but for the cases marked in the file.
func TestCheckAgreesWithQuickJS(t *testing.T) {
	e := testEngine(t)
	for source, differs := range grammar(t) {
		verdict, judged := checkVerdict(source)
		if !judged {
			continue
		}
		engine := quickJSVerdict(t, e, source)
		if (verdict == "") != (engine == "") != differs {
			t.Errorf("%q: check %q, QuickJS %q, known to differ: %t", source, verdict, engine, differs)
		}
	}
}

// differences are what the check and QuickJS are known to see differently.
// Above, the check is stricter than QuickJS and right; below, QuickJS is
// stricter than the check.
var differences = regexp.MustCompile(`an optional chain cannot be constructed|arguments cannot be|a setter has one parameter|is declared twice|cannot be declared again|needs parentheses beside` +
	`|a class has no end|a lone bracket|nothing to repeat|no such group|bad escape|incomplete quantifier|":" is expected|"=>", "\{" is expected|is not declared|cannot be assigned to|extraneous characters` +
	`|unknown unicode|invalid property name|break/continue label|invalid class range|invalid repetition count|expecting '\}'|the flag v is|would keep an old value|a property of letter case`)

var lexemes = regexp.MustCompile(`\\?[\p{L}_$][\p{L}\p{N}_$]*|\d+|\s+|[^\p{L}\s\d]`)

// TestCheckAgreesOnMutants does the same with random changes of the cases; the
// seed is fixed.
func TestCheckAgreesOnMutants(t *testing.T) {
	e := testEngine(t)
	n := 800
	if testing.Short() {
		n = 100
	}
	random := rand.New(rand.NewPCG(7, 11))
	var all [][]string
	var pool []string
	b, err := os.ReadFile("check/testdata/grammar.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if len(line) > 19 && line[0] != '#' {
			words := lexemes.FindAllString(strings.ReplaceAll(line[19:], "⏎", "\n"), -1)
			all = append(all, words)
			pool = append(pool, words...)
		}
	}
	for range n {
		words := append([]string(nil), all[random.IntN(len(all))]...)
		for k := 1 + random.IntN(3); k > 0 && len(words) > 0; k-- {
			i, j := random.IntN(len(words)), random.IntN(len(words))
			switch random.IntN(4) {
			case 0:
				words = append(words[:i], words[i+1:]...)
			case 1:
				words[i] = pool[random.IntN(len(pool))]
			case 2:
				words = append(words, pool[random.IntN(len(pool))])
			case 3:
				words[i], words[j] = words[j], words[i]
			}
		}
		source := strings.Join(words, "")
		verdict, judged := checkVerdict(source)
		if !judged {
			continue
		}
		if engine := quickJSVerdict(t, e, source); (verdict == "") != (engine == "") && !differences.MatchString(verdict+engine) {
			t.Errorf("%q: check %q, QuickJS %q", source, verdict, engine)
		}
	}
}
