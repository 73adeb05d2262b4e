package contract

// CheckOffer refuses, as InvalidInput, more than a model may be offered natively:
// the tools that it may call itself, its recipes, and the catalogue of run_code
// together have at most MaxOfferBytes.
func CheckOffer(tools []PinnedTool, recipes []PinnedRecipeTool, c Catalogue) error {
	n := len(c.Text)
	for _, t := range tools {
		if t.Direct {
			n += len(t.Tool.Name) + len(t.Tool.Description) + len(t.Tool.InputSchema)
		}
	}
	for _, r := range recipes {
		n += len(r.ToolName) + len(r.Description) + len(r.InputSchema)
	}
	if n <= MaxOfferBytes {
		return nil
	}
	return Faultf(ReasonInvalidInput,
		"spec.agent: the tools and recipes that the model would be offered have %d bytes of names, descriptions and schemas, more than %d; name fewer of them", n, MaxOfferBytes)
}

// FromCode are the declarations of the tools that programs of the run, or of its
// model, may call: what a catalogue shows.
func FromCode(pinned []PinnedTool) []Tool {
	var out []Tool
	for _, t := range pinned {
		if !t.NotFromCode {
			out = append(out, t.Tool)
		}
	}
	return out
}
