package smallage

// OutcomeCall lets tests write an outcome as workers do: the script, and its arguments behind the TTL, the status and the
// channel of the notice.
func OutcomeCall(fields ...any) (source string, args []any) {
	return outcomeScript.source, append([]any{packFields(fields, largestNotice)}, fields...)
}
