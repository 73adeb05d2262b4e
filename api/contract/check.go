package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
)

// CheckVersion is the schema version of a Check.
const CheckVersion = "check.v1"

// CheckKey is the ConfigMap key of a Check and the name of its file in the pod.
const CheckKey = "check.json"

// CheckDir is where the ConfigMap of a Check is mounted into a check pod.
const CheckDir = "/var/run/codeact/check"

// EnvCheckDigest tells a check pod the digest of what it is to run.
const EnvCheckDigest = "CODEACT_CHECK_DIGEST"

// CheckCommand is the runtime's subcommand that runs a Check.
const CheckCommand = "check"

// CheckPath is the file of the Check in its pod.
func CheckPath() string { return path.Join(CheckDir, CheckKey) }

// Check is what a check pod runs: a recipe in its effective form with its tests. It
// holds names of tools, never an address or a credential: there is nothing in it
// that a tool could be reached by.
type Check struct {
	// Version is CheckVersion.
	Version string `json:"version"`
	// Recipe is the recipe's name as a tool.
	Recipe string `json:"recipe"`
	// ManifestDigest is that of the manifest whose tests these are.
	ManifestDigest string `json:"manifestDigest"`
	// Source is the program.
	Source string `json:"source"`
	// InputSchema and OutputSchema are JSON Schemas; empty means that everything passes.
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Tools are the names that the program may call.
	Tools []string `json:"tools"`
	// Limits bound each test; every one that bounds is set.
	Limits Limits `json:"limits"`
	// TimeoutMs bounds all tests together, in milliseconds.
	TimeoutMs int64 `json:"timeoutMs"`
	// Tests are what is run, in this order.
	Tests []Fixture `json:"tests"`
}

// Encode returns the canonical bytes of c and their digest. A check of more than
// MaxBundleBytes is a BundleTooLarge fault.
func (c Check) Encode() ([]byte, string, error) {
	c.Version = CheckVersion
	out, err := Canonical(c)
	if err != nil {
		return nil, "", err
	}
	if len(out) > MaxBundleBytes {
		return nil, "", Faultf(ReasonBundleTooLarge,
			"program, schemas and tests together have %d bytes, more than %d; shorten the tests or the schemas", len(out), MaxBundleBytes)
	}
	return out, Digest(out), nil
}

// DecodeCheck reads the bytes of a check whose digest must be want. Nothing of it
// is read before the digest holds; every error is a DigestMismatch fault.
func DecodeCheck(raw []byte, want string) (Check, error) {
	var c Check
	if !ValidDigest(want) {
		return c, Faultf(ReasonDigestMismatch, "the expected digest of the check is malformed")
	}
	if got := Digest(raw); got != want {
		return c, Faultf(ReasonDigestMismatch, "the check's digest is %s, not %s", got, want)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Check{}, Faultf(ReasonDigestMismatch, "the check cannot be read: %v", err)
	}
	if c.Version != CheckVersion {
		return Check{}, Faultf(ReasonDigestMismatch, "the check has version %q; this runtime reads %q", c.Version, CheckVersion)
	}
	return c, nil
}

// CheckReport is all that a check pod says: how many tests passed, and which failed.
type CheckReport struct {
	// Check is the digest of the check that was run.
	Check string `json:"check"`
	// Passed counts the tests that passed.
	Passed int `json:"passed"`
	// Failed are the others, by their place, each once and in order.
	Failed []FailedTest `json:"failed,omitempty"`
}

// FailedTest is one test that failed.
type FailedTest struct {
	// Index is the test's place, from 0.
	Index int `json:"index"`
	// Reason is why the run of the test failed, if it did.
	Reason Reason `json:"reason,omitempty"`
	// Message says what was not as the test expects, at most MaxFailedTestBytes.
	Message string `json:"message,omitempty"`
}

// MaxFailedTestBytes bounds the message about one test.
const MaxFailedTestBytes = 1024

// checkMessage is the termination message. Digest covers Report, so that a message
// that was cut short is none.
type checkMessage struct {
	Version string          `json:"codeact"`
	Digest  string          `json:"digest"`
	Report  json.RawMessage `json:"report"`
}

// TerminationMessage returns r as a message of at most MaxTerminationBytes. Where
// there is not enough room, every message is cut to the same length.
func (r CheckReport) TerminationMessage() ([]byte, error) {
	for most := MaxFailedTestBytes; ; most /= 2 {
		short := r
		short.Failed = nil
		for _, f := range r.Failed {
			f.Message = Truncate(f.Message, most)
			short.Failed = append(short.Failed, f)
		}
		report, err := Canonical(short)
		if err != nil {
			return nil, err
		}
		b, err := Canonical(checkMessage{Version: CheckVersion, Digest: Digest(report), Report: report})
		if err != nil || len(b) <= MaxTerminationBytes {
			return b, err
		}
		if most == 0 {
			return nil, fmt.Errorf("the report does not fit %d bytes", MaxTerminationBytes)
		}
	}
}

// ParseCheckReport reads the termination message of a check pod. It must be whole,
// and be about the check with the digest want and all of its tests.
func ParseCheckReport(message []byte, want string, tests int) (*CheckReport, error) {
	var m checkMessage
	d := json.NewDecoder(bytes.NewReader(message))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, errors.New("the termination message is no report")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the termination message has text behind the report")
	}
	if m.Version != CheckVersion || Digest(m.Report) != m.Digest {
		return nil, errors.New("the termination message is no whole report")
	}
	var r CheckReport
	if err := json.Unmarshal(m.Report, &r); err != nil {
		return nil, errors.New("the termination message is no report")
	}
	if r.Check != want {
		return nil, errors.New("the report is about another check")
	}
	last := -1
	for _, f := range r.Failed {
		if f.Index <= last || f.Index >= tests || len(f.Message) > MaxFailedTestBytes || f.Reason != "" && !f.Reason.Known() {
			return nil, errors.New("the report contradicts itself")
		}
		last = f.Index
	}
	if r.Passed < 0 || r.Passed+len(r.Failed) != tests {
		return nil, errors.New("the report is not about every test")
	}
	return &r, nil
}
