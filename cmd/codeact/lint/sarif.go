package lint

import (
	"cmp"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// SARIF 2.1.0, as far as findings need it and code scanning reads it.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string      `json:"id"`
		Name             string      `json:"name"`
		ShortDescription sarifText   `json:"shortDescription"`
		FullDescription  sarifText   `json:"fullDescription"`
		Help             sarifText   `json:"help"`
		Default          sarifLevel  `json:"defaultConfiguration"`
		Properties       sarifWeight `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLevel struct {
		Level Level `json:"level"`
	}
	sarifWeight struct {
		Tags            []string `json:"tags"`
		ProblemSeverity string   `json:"problem.severity"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        Level             `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine   int `json:"startLine"`
				StartColumn int `json:"startColumn"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// about says what a rule is about.
var about = map[string]string{
	RuleManifest:      "The files of a recipe are whole, well formed and within their bounds.",
	RuleAdmission:     "The API server accepts the Recipe.",
	RuleToolNotCalled: "Every declared tool is called.",
	RuleDynamicTool:   "Calls of tools have literal names.",

	string(contract.ReasonToolNotAllowed):  "Every tool that is called is declared.",
	string(contract.ReasonSourceTooLarge):  "The program is within its limit.",
	string(contract.ReasonSyntaxError):     "The program can be parsed.",
	string(contract.ReasonProhibited):      "The program uses nothing that the sandbox does not offer.",
	string(contract.ReasonJavaScriptError): "The program declares function main(input).",
	string(contract.ReasonDigestMismatch):  "The program is the one that was reviewed.",
	string(contract.ReasonSchemaInvalid):   "Schemas are JSON Schemas that refer to nothing outside.",
	string(contract.ReasonNameConflict):    "Names of recipes are unique.",
	string(contract.ReasonReservedName):    "Names of the runtime are not taken.",
	string(contract.ReasonToolsNotGranted): "Recipes call tools, not recipes.",
	string(contract.ReasonRecursive):       "A recipe does not call itself.",
	string(contract.ReasonLimitsTooHigh):   "Limits are within the operator's.",
}

// WriteSARIF writes findings for code scanning.
func WriteSARIF(w io.Writer, found []Finding) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "codeact recipe lint", Rules: []sarifRule{}}
	levels := map[string]Level{}
	for _, f := range found {
		levels[f.Rule] = f.Level
	}
	index := map[string]int{}
	for _, id := range sortedKeys(levels) {
		index[id] = len(run.Tool.Driver.Rules)
		text := sarifText{cmp.Or(about[id], id)}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: id, Name: id, ShortDescription: text, FullDescription: text, Help: text, Default: sarifLevel{levels[id]},
			Properties: sarifWeight{Tags: []string{"codeact"}, ProblemSeverity: string(levels[id])},
		})
	}
	for i := range found {
		run.Results = append(run.Results, found[i].sarif(index[found[i].Rule]))
	}
	return writeJSON(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func sortedKeys(m map[string]Level) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (f *Finding) sarif(rule int) sarifResult {
	r := sarifResult{RuleID: f.Rule, RuleIndex: rule, Level: f.Level, Message: sarifText{f.Message}}
	var at sarifLocation
	slashed := filepath.ToSlash(f.Path)
	at.Physical.Artifact.URI = (&url.URL{Path: slashed}).EscapedPath()
	if strings.HasPrefix(slashed, "/") {
		at.Physical.Artifact.URI = (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	at.Physical.Region.StartLine, at.Physical.Region.StartColumn = max(f.Line, 1), max(f.Column, 1)
	r.Locations = []sarifLocation{at}
	// What a finding is recognised by, when lines above it come and go.
	line, _ := f.line()
	r.Fingerprints = map[string]string{
		"primaryLocationLineHash": strings.TrimPrefix(contract.Digest([]byte(f.Rule+"\n"+slashed+"\n"+line)), "sha256:")[:16] + ":1",
	}
	return r
}
