/* Loaded into a server under test, this gives it a wall clock that is wrong by SKEW_SECONDS. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long skew(void) {
	static long seconds;
	static int known;
	if (!known) {
		const char *text = getenv("SKEW_SECONDS");
		seconds = text ? atol(text) : 0;
		known = 1;
	}
	return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	int err = syscall(SYS_clock_gettime, clock, now);
	if (err == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += skew();
	return err;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
	int err = syscall(SYS_gettimeofday, now, zone);
	if (err == 0) now->tv_sec += skew();
	return err;
}

time_t time(time_t *now) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (now) *now = t.tv_sec;
	return t.tv_sec;
}
