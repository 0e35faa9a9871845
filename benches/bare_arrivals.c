/* The least that issues requests on time: a loop that looks at the clock until each is due, and does nothing
 * else. What it misses the machine takes away, so it is the floor for benches/arrivals.py.
 *
 *     bare_arrivals RATE SECONDS SEED [ON OFF]     Poisson, or on and off with means of ON and OFF seconds
 *
 * Writes when each was issued, ns, as int64. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double exponential(double mean) { return -mean * log(1 - drand48()); }

int main(int count, char **words) {
    if (count != 4 && count != 6) return 2;
    double rate = atof(words[1]), seconds = atof(words[2]), on = 0, off = 0, left = INFINITY;
    srand48(atol(words[3]));
    size_t room = (size_t)(2 * rate * seconds) + 1000, n = 0;
    int64_t *due = malloc(room * sizeof *due), *issued = malloc(room * sizeof *issued);
    if (!due || !issued) return 1;
    memset(issued, 0, room * sizeof *issued);
    if (count == 6) {
        on = atof(words[4]), off = atof(words[5]);
        rate *= (on + off) / on;
        left = exponential(on);
    }
    for (double t = 0; n < room;) {
        double gap = exponential(1 / rate);
        if (gap > left) {
            t += left + exponential(off);
            left = exponential(on);
            continue;
        }
        left -= gap;
        t += gap;
        if (t >= seconds) break;
        due[n++] = (int64_t)(t * 1e9);
    }
    int64_t start = now() + 1000000, at;
    for (size_t i = 0; i < n; i++) {
        while ((at = now()) < start + due[i]) continue;
        issued[i] = at;
    }
    return fwrite(issued, sizeof *issued, n, stdout) == n ? 0 : 1;
}
