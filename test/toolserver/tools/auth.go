package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func token(r *http.Request) string {
	t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return t
}

// bearer says which token came: None, Expected (that of the token file) or Other.
func (s *server) bearer(r *http.Request) string {
	got := token(r)
	if got == "" {
		return "None"
	}
	want, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "Other"
	}
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256(bytes.TrimSpace(want))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return "Other"
	}
	return "Expected"
}

func (s *server) auth(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	if s.bearer(r) != "Expected" {
		problem(w, http.StatusUnauthorized, "another credential was expected")
		return
	}
	answer(w, http.StatusOK, map[string]bool{"authenticated": true})
}

// Reviewer asks whether a token is valid for an audience, and whose it is.
type Reviewer func(ctx context.Context, token, audience string) (user string, err error)

func (s *server) review(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	if s.Reviewer == nil {
		problem(w, http.StatusUnauthorized, "nobody can review tokens here")
		return
	}
	user, err := s.Reviewer(r.Context(), token(r), r.URL.Query().Get("audience"))
	if err != nil {
		problem(w, http.StatusUnauthorized, err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]string{"user": user})
}

const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster returns a Reviewer that asks the API server of the cluster that this
// process runs in, or nil outside of one.
func InCluster() Reviewer {
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	ca, err := os.ReadFile(filepath.Join(accountDir, "ca.crt"))
	if host == "" || err != nil {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}
	url := "https://" + net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT")) + "/apis/authentication.k8s.io/v1/tokenreviews"
	return func(ctx context.Context, token, audience string) (string, error) {
		return tokenReview(ctx, client, url, token, audience)
	}
}

func tokenReview(ctx context.Context, client *http.Client, url, token, audience string) (string, error) {
	own, err := os.ReadFile(filepath.Join(accountDir, "token"))
	if err != nil {
		return "", errors.New("the server has no token of its own")
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": map[string]any{"token": token, "audiences": []string{audience}},
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+string(own))
	res, err := client.Do(req)
	if err != nil {
		return "", errors.New("the API server could not be asked")
	}
	defer func() { _ = res.Body.Close() }()
	var out struct {
		Status struct {
			Authenticated bool
			User          struct{ Username string }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusCreated {
		return "", errors.New("the API server did not review the token")
	}
	if !out.Status.Authenticated {
		return "", errors.New("the token is not valid for this audience")
	}
	return out.Status.User.Username, nil
}
