package contract

import (
	"strings"
	"testing"
)

func TestValidTraceParent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tests := map[string]struct {
		text string
		want bool
	}{
		"sampled":              {good, true},
		"not sampled":          {good[:len(good)-2] + "00", true},
		"flags of the future":  {good[:len(good)-2] + "ff", true},
		"empty":                {"", false},
		"another version":      {"01" + good[2:], false},
		"no version":           {"ff" + good[2:], false},
		"upper case":           {strings.ToUpper(good), false},
		"no trace":             {"00-" + strings.Repeat("0", 32) + good[35:], false},
		"no span":              {good[:36] + strings.Repeat("0", 16) + "-01", false},
		"short":                {good[:len(good)-1], false},
		"long":                 {good + "-00", false},
		"a space behind it":    {good + " ", false},
		"a line break":         {good[:len(good)-1] + "\n", false},
		"no digit":             {strings.Replace(good, "0af7", "0ag7", 1), false},
		"no digit in the last": {good[:len(good)-2] + "0x", false},
		"a digit inside only":  {strings.Replace(good, "0af7", "a\x00f7", 1), false},
		"another separator":    {strings.ReplaceAll(good, "-", "_"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ValidTraceParent(tc.text); got != tc.want {
				t.Errorf("%q: %v, want %v", tc.text, got, tc.want)
			}
		})
	}
}
