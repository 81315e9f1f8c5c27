package main

import "fmt"

const (
	slots           = 16384
	testMasters     = 3 // of the cluster that is measured
	queuesPerMaster = 2
)

// slot is the hash slot of a queue of Smallage, whose keys carry the hash tag {q:name}.
func slot(queue string) int {
	var crc uint16
	for _, b := range []byte("q:" + queue) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// masterOf tells on which of the masters a queue lies, where each holds an equal range of slots.
func masterOf(queue string, masters int) int { return ((slot(queue)+1)*masters - 1) / slots }

// queuesOn names queues that lie on the first few masters of the measured cluster, as many on each.
func queuesOn(masters int) []string {
	names, taken := make([]string, 0, queuesPerMaster*masters), make([]int, testMasters)
	for n := 0; len(names) < cap(names); n++ {
		name := fmt.Sprintf("bench%d", n)
		if m := masterOf(name, testMasters); m < masters && taken[m] < queuesPerMaster {
			taken[m]++
			names = append(names, name)
		}
	}
	return names
}

// spread measures one, two and three masters of one cluster, with as many queues, callers and handlers for each master as
// for one alone: what a job costs must not depend on their number.
func (s size) spread() (rows []row) {
	for masters := 1; masters <= testMasters; masters++ {
		label := []string{"1 master", "2 masters", "3 masters"}[masters-1]
		enqueue := row{
			name: "enqueue on " + label, table: "enqueue on more masters", label: label, who: []string{"smallage"},
			about: "for each master two queues and 64 callers, all in one process; the machine's cores stay the same",
			order: order{Scenario: "enqueue", Callers: 64 * masters, Jobs: s.jobs, Queues: queuesOn(masters), Features: features{Cluster: true}},
			show:  []column{together, cpu, redisCPU, rate, commands, arrivals},
		}
		drain := s.drain("drain on "+label, "for each master two queues and 50 handlers at once, all in one process; the machine's cores stay the same",
			features{Cluster: true}, "smallage")
		drain.table, drain.label = "drain on more masters", label
		drain.order.Queues, drain.order.Concurrency = queuesOn(masters), 50*masters
		drain.show = []column{together, worker, redisCPU, rate, commands, readSize, clients}
		rows = append(rows, enqueue, drain)
	}
	return rows
}
