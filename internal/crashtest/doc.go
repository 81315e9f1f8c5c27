// Package crashtest proves what the runtime promises about jobs whose workers are killed, frozen and cut off. It runs real
// worker processes against a real Redis, has them write every side effect into files that outlive them, and compares
// these at the end with what is in Redis.
//
// The program in worker is built with the build tag smallagepoints, under which the runtime has named points between its
// calls to Redis at which a process can be told to kill itself.
package crashtest
