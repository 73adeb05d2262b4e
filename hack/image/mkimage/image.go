package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"
)

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// meta is what an image says about itself beside its files.
type meta struct {
	name, user, arch string
	entrypoint, env  []string
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	platform
	Created string      `json:"created"`
	Config  execution   `json:"config"`
	RootFS  rootFS      `json:"rootfs"`
	History []histEntry `json:"history"`
}

type execution struct {
	User       string   `json:"User"`
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	WorkingDir string   `json:"WorkingDir"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type histEntry struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func describe(mediaType string, b []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: digestOf(b), Size: len(b)}
}

// writeImage writes an OCI layout with one image of one layer to path, and
// returns the digest of its manifest.
func writeImage(path string, m meta, layer []byte) (string, error) {
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	digest, err := encodeImage(f, m, layer)
	if err != nil {
		return "", err
	}
	return digest, f.Close()
}

func encodeImage(w io.Writer, m meta, layer []byte) (string, error) {
	at, where := epoch.Format(time.RFC3339), platform{m.arch, "linux"}
	config, err := json.Marshal(imageConfig{
		platform: where,
		Created:  at,
		Config:   execution{User: m.user, Env: m.env, Entrypoint: m.entrypoint, WorkingDir: "/"},
		RootFS:   rootFS{"layers", []string{digestOf(layer)}},
		History:  []histEntry{{at, "mkimage"}},
	})
	if err != nil {
		return "", err
	}
	man, err := json.Marshal(manifest{2, typeManifest, describe(typeConfig, config), []descriptor{describe(typeLayer, layer)}})
	if err != nil {
		return "", err
	}
	entry := describe(typeManifest, man)
	entry.Platform = &where
	// The first names the image for containerd's import, the second for other tools.
	entry.Annotations = map[string]string{"io.containerd.image.name": m.name, "org.opencontainers.image.ref.name": m.name}
	idx, err := json.Marshal(index{2, typeIndex, []descriptor{entry}})
	if err != nil {
		return "", err
	}
	files := []struct {
		name    string
		content []byte
	}{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", idx}, {blob(man), man}, {blob(config), config}, {blob(layer), layer}}
	tw := tar.NewWriter(w)
	for _, f := range files {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.content)), ModTime: epoch}); err != nil {
			return "", err
		}
		if _, err := tw.Write(f.content); err != nil {
			return "", err
		}
	}
	return entry.Digest, tw.Close()
}

func blob(b []byte) string { return "blobs/sha256/" + strings.TrimPrefix(digestOf(b), "sha256:") }
