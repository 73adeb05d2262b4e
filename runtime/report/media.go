package report

import (
	"context"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// StoreMedia keeps the media of the run's result in a ConfigMap of its own, which
// belongs to the run, and returns how the report names it. It is there as a whole
// or not at all. It tries for as long as WriteThrough does.
func (c *Client) StoreMedia(ctx context.Context, m *contract.Media, seq int64) (*contract.MediaRef, error) {
	raw, digest, err := m.Encode()
	if err != nil {
		return nil, err
	}
	ref := m.Ref(c.cfg.Pod.Name, seq, digest)
	cm := c.configMap(ref.ConfigMap)
	cm.Data = map[string]string{contract.MediaKey: string(raw)}
	if err := c.store(ctx, cm); err != nil {
		return nil, err
	}
	return ref, nil
}
