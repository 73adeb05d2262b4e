package report

import (
	"context"
	"fmt"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// StoreTranscript keeps the packed transcript of the execution in a ConfigMap of
// its own, which belongs to the run, and returns the ConfigMap's name. It is there
// as a whole or not at all. It tries for as long as WriteThrough does.
func (c *Client) StoreTranscript(ctx context.Context, packed []byte) (string, error) {
	if len(packed) > contract.MaxTranscriptBytes {
		return "", fmt.Errorf("the transcript has %d bytes, more than %d", len(packed), contract.MaxTranscriptBytes)
	}
	cm := c.configMap(contract.TranscriptName(c.cfg.Pod.Name))
	cm.BinaryData = map[string][]byte{contract.TranscriptKey: packed}
	if err := c.store(ctx, cm); err != nil {
		return "", err
	}
	return cm.Name, nil
}
