// Package toolset declares tools as they are declared in practice, for tests and
// measurements that need many of them.
package toolset

import (
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// kinds are ten tools as they are declared in practice, small and large.
var kinds = []struct{ name, description, in, out string }{
	{"get", "Returns one record by its id, or null when there is none.", `"id":{"type":"string"}`, `"id":{"type":"string"},"name":{"type":"string"},"status":{"type":"string"}`},
	{"list", "Lists the records that match, the newest first, one page at a time.", `"filter":{"type":"string","description":"words that occur in the name"},"limit":{"type":"integer","minimum":1,"maximum":100},"cursor":{"type":"string"}`, `"items":{"type":"array","items":{"type":"object"}},"next":{"type":"string"}`},
	{"create", "Creates a record and returns its id.", `"name":{"type":"string","maxLength":120},"status":{"enum":["open","held","closed"]},"tags":{"type":"array","items":{"type":"string"}}`, `"id":{"type":"string"}`},
	{"update", "Changes the given fields of a record; the others stay as they are.", `"id":{"type":"string"},"name":{"type":"string"},"status":{"enum":["open","held","closed"]}`, `"changed":{"type":"boolean"}`},
	{"delete", "Deletes a record for good.", `"id":{"type":"string"},"reason":{"type":"string"}`, `"deleted":{"type":"boolean"}`},
	{"count", "Counts the records by a field.", `"by":{"enum":["status","owner","month"]}`, `"counts":{"type":"object","additionalProperties":{"type":"integer"}}`},
	{"notify", "Sends a message to the owner of a record by mail.", `"id":{"type":"string"},"subject":{"type":"string"},"text":{"type":"string"}`, `"messageId":{"type":"string"}`},
	{"history", "Returns who changed a record, and when.", `"id":{"type":"string"},"since":{"type":"string","format":"date-time"}`, `"changes":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string"},"by":{"type":"string"}}}}`},
	{"export", "Writes the records that match to a file and returns where it is.", `"filter":{"type":"string"},"format":{"enum":["csv","json"]}`, `"url":{"type":"string"},"bytes":{"type":"integer"}`},
	{"assign", "Gives a record to another owner.", `"id":{"type":"string"},"owner":{"type":"string"}`, `"previous":{"type":"string"}`},
}

// Declare declares n tools, at most 100: the ten kinds for one sort of record after the
// other.
func Declare(n int) []contract.Tool {
	of := []string{"order", "invoice", "customer", "ticket", "shipment", "contract", "product", "employee", "device", "project"}
	var tools []contract.Tool
	for i := range n {
		k := kinds[i%len(kinds)]
		tools = append(tools, contract.Tool{
			Name: of[i/len(kinds)] + "_" + k.name, Description: k.description,
			InputSchema:  json.RawMessage(`{"type":"object","properties":{` + k.in + `},"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{` + k.out + `}}`),
		})
	}
	return tools
}
