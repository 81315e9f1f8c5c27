// Package smallage is the runtime of the Smallage task queue: plain Go functions become typed calls whose work runs on
// workers, over Redis streams.
//
// The package is seldom called by hand. Annotate a function with //smallage:task, run go generate, and use what it
// writes: XEnqueue with the options of XWith, XLookup and XWait, and Dispatch for the worker. What remains to be used
// directly is NewClient, Client.Result and Client.Wait, NewWorker and Worker.Run, and CollectingEnqueuer in unit tests.
package smallage
