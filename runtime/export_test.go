package smallage

import "time"

// OutcomeCommand lets tests write an outcome as workers do. It returns 1 where it is written.
func OutcomeCommand(namespace string, id JobID, status Status, fields ...any) []any {
	o := outcome{id: id, ttl: time.Minute, status: status, finished: time.Now().UnixMilli()}
	var more []any
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "task" {
			o.task = fields[i+1].(string)
		} else {
			more = append(more, fields[i], fields[i+1])
		}
	}
	return append([]any{"EVAL", outcomeScript.source}, o.call(newKeyspace(namespace), more).args[2:]...)
}
