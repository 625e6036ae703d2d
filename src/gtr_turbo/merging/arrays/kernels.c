/* The inner loops of merges in one pass each. Built on request by gtr_turbo.merging.arrays.native,
 * without contraction of products and sums, so that results equal those of the loops in numpy bit
 * for bit. Everything is loaded before it is chosen from: a branch on a sign would be guessed
 * wrong half of the time. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static float widened(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Add the entries of d whose magnitude reaches threshold, with weight 1 each. */
void gtr_add(const float *restrict d, size_t num, float threshold, float *restrict positive_mass,
             float *restrict negative_mass, uint8_t *restrict positive_count,
             uint8_t *restrict negative_count) {
    for (size_t i = 0; i < num; i++) {
        const float value = d[i];
        const float up = value >= threshold ? value : 0.0f;
        const float down = value <= -threshold ? value : 0.0f;
        positive_mass[i] += up;
        negative_mass[i] += down;
        positive_count[i] += value >= threshold;
        negative_count[i] += value <= -threshold;
    }
}

/* Write the mean of the elected sign, + where both masses cancel, and 0 where nothing was kept. */
void gtr_finish(const float *restrict positive_mass, const float *restrict negative_mass,
                const uint8_t *restrict positive_count, const uint8_t *restrict negative_count,
                size_t num, float *restrict result) {
    for (size_t i = 0; i < num; i++) {
        const float up = positive_mass[i], down = negative_mass[i];
        const float up_count = positive_count[i], down_count = negative_count[i];
        const float mass = up + down >= 0.0f ? up : down;
        const float count = up + down >= 0.0f ? up_count : down_count;
        result[i] = mass / (count > 1.0f ? count : 1.0f);
    }
}

/* Write the difference of two bfloat16 arrays. */
void gtr_subtract(const uint16_t *restrict values, const uint16_t *restrict reference, size_t num,
                  float *restrict result) {
    for (size_t i = 0; i < num; i++)
        result[i] = widened(values[i]) - widened(reference[i]);
}

/* Write base + delta, rounded to the nearest bfloat16, ties to even; where the delta is 0, the base
 * bit for bit. Return whether everything is finite. */
int gtr_apply(const uint16_t *restrict base, const float *restrict delta, size_t num,
              uint16_t *restrict result) {
    uint16_t largest = 0;
    for (size_t i = 0; i < num; i++) {
        const float sum = widened(base[i]) + delta[i];
        uint32_t bits;
        memcpy(&bits, &sum, sizeof bits);
        const uint16_t rounded = (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
        const uint16_t own = delta[i] == 0.0f ? base[i] : rounded;
        const uint16_t magnitude = own & 0x7FFFu;
        largest = magnitude > largest ? magnitude : largest;
        result[i] = own;
    }
    return largest < 0x7F80u;
}
