// Package contract holds the words that the controllers and the runtime share:
// digests, limits, tool declarations, grants, the pinned bundle, the journal,
// the report and the one taxonomy of reasons. The two processes meet only in
// the bytes that this package writes and parses.
package contract
