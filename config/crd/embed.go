// Package crd holds the generated CustomResourceDefinitions, so that offline
// tools give the verdicts of the API server.
package crd

import "embed"

// Bases has the generated definitions under bases/, one file a kind.
//
//go:embed bases/*.yaml
var Bases embed.FS
