package contract

import "strings"

// ValidTraceParent reports whether s is a W3C traceparent of the version 00, as
// strictly as the recommendation has it: lower-case digits, and neither the trace
// nor the span all zero.
func ValidTraceParent(s string) bool {
	parts := strings.Split(s, "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return false
	}
	for _, p := range parts {
		if strings.Trim(p, "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}
