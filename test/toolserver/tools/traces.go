package tools

import (
	"io"
	"net/http"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxTraces bounds the requests that are kept; the oldest go first.
const maxTraces = 1000

// traces is a collector of spans by OTLP over HTTP: it keeps every request as it
// came. It is safe for concurrent use.
type traces struct {
	mu   sync.Mutex
	kept []*collector.ExportTraceServiceRequest
}

func (t *traces) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	var x collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &x) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == maxTraces {
		t.kept = t.kept[1:]
	}
	t.kept = append(t.kept, &x)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// list answers with everything that came, one request a line, as OTLP's JSON.
func (t *traces) list(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.kept {
		line, err := protojson.Marshal(x)
		if err == nil {
			_, _ = w.Write(append(line, '\n'))
		}
	}
}
