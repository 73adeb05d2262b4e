package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// keep stores the media of the result and the transcript, at once, and names in the
// report what it stored. That something could not be stored is no reason for a run
// to fail: its effects and its output stand, and a transcript is on the standard
// output as well.
func (p *process) keep(ctx context.Context, e *contract.Execution, o loop.Outcome) (changed bool, lost error) {
	// Half of the time is left for the report itself.
	ctx, cancel := context.WithTimeout(ctx, min(p.ReportFor, p.GraceFor)/2)
	defer cancel()
	var both sync.WaitGroup
	var noMedia, noTranscript error
	packed, ref := p.events.Transcript()
	if ref != nil {
		e.Transcript, changed = ref, true
		both.Go(func() {
			if ref.ConfigMap, noTranscript = p.client.StoreTranscript(ctx, packed); noTranscript != nil {
				p.events.Lost(p.bundle)
			}
		})
	}
	if o.Media != nil {
		e.Media, noMedia = p.client.StoreMedia(ctx, o.Media, o.MediaSeq)
		changed = true
	}
	both.Wait()
	switch {
	case noMedia != nil && noTranscript != nil:
		return changed, fmt.Errorf("the media of the result and the transcript are lost: %w, and %w", noMedia, noTranscript)
	case noMedia != nil:
		return changed, fmt.Errorf("the media of the result are lost: %w", noMedia)
	case noTranscript != nil:
		return changed, fmt.Errorf("the transcript is not stored: %w", noTranscript)
	}
	return changed, nil
}
