/* The inner loops of TIES sums in one pass each. Built on request by gtr_turbo.merging.native, without
 * contraction of products and sums, so that results equal those of the loops in kernels.py bit for bit. */

#include <stddef.h>
#include <stdint.h>

/* Add the entries of d whose magnitude reaches threshold, with weight 1 each. */
void gtr_add(const float *d, size_t num, float threshold, float *positive_mass,
             float *negative_mass, uint8_t *positive_count, uint8_t *negative_count) {
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
void gtr_finish(const float *positive_mass, const float *negative_mass,
                const uint8_t *positive_count, const uint8_t *negative_count, size_t num,
                float *result) {
    for (size_t i = 0; i < num; i++) {
        const int is_positive = positive_mass[i] + negative_mass[i] >= 0.0f;
        const float mass = is_positive ? positive_mass[i] : negative_mass[i];
        const float count = is_positive ? positive_count[i] : negative_count[i];
        result[i] = mass / (count > 1.0f ? count : 1.0f);
    }
}
