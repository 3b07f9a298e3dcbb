//! Generates random content: eight xoroshiro128+ generators side by side, in the widest vectors of the machine.
//!
//! Each step gives eight 64-bit words. The generator's low bits are weak, which does not matter for content. The vectors
//! are written out, because a compiler's own vectorisation of the portable loop came and went with the code around it:
//! for a while the path for AVX-512 was scalar code, seven times slower than docs/dev/performance.md stated. Every
//! width gives the same bytes.
//!
//! Cost of 4 KiB: docs/dev/performance.md, row P21; instructions: `cargo xtask gate`.
//!
//! Source: Blackman, Vigna, "Scrambled Linear Pseudorandom Number Generators" (2021); Intel Intrinsics Guide; Arm
//! Neon Intrinsics Reference.

use trueio_model::mix64;

const LANES: usize = 8;
const STEP_BYTES: usize = LANES * 8;

/// Eight xoroshiro128+ generators.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    a: [u64; LANES],
    b: [u64; LANES],
}

/// The instructions that fill a buffer; the processor supports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vectors(Width);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// 512 bits: a step is one vector.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 128 bits, which every x86-64 processor has.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// 128 bits, which every 64-bit Arm processor has.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
    /// 64-bit words.
    #[cfg(any(test, not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))))]
    Words,
}

impl Vectors {
    /// Returns what this processor supports, the widest first.
    pub(super) fn supported() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                found.push(Vectors(Width::Avx512));
            }
            if is_x86_feature_detected!("avx2") {
                found.push(Vectors(Width::Avx2));
            }
            found.push(Vectors(Width::Sse2));
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        found.push(Vectors(Width::Neon));
        #[cfg(any(test, not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))))]
        found.push(Vectors(Width::Words));
        found
    }

    /// Returns the widest that this processor supports.
    pub(super) fn widest() -> Self {
        Self::supported()[0]
    }
}

impl Lanes {
    /// Returns the generators that belong to `seed`.
    pub(super) fn new(seed: u64) -> Self {
        let word = |i: usize| mix64(seed ^ mix64(i as u64 + 1)) | 1;
        Self { a: std::array::from_fn(word), b: std::array::from_fn(|i| word(i + LANES)) }
    }

    /// Fills `out` with the next bytes; the rest of a last, partial step is discarded.
    pub(super) fn fill(&mut self, out: &mut [u8], vectors: Vectors) {
        let mut steps = out.chunks_exact_mut(STEP_BYTES);
        match vectors.0 {
            // SAFETY: the processor supports it, as `Vectors::supported` found.
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => unsafe { x86::fill_avx512(self, &mut steps) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => unsafe { x86::fill_avx2(self, &mut steps) },
            // SAFETY: every x86-64 processor supports it.
            #[cfg(target_arch = "x86_64")]
            Width::Sse2 => unsafe { fill_steps::<x86::Sse2, 4>(self, &mut steps) },
            // SAFETY: every processor of this target supports it.
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Width::Neon => unsafe { fill_steps::<arm::Neon, 4>(self, &mut steps) },
            #[cfg(any(test, not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))))]
            Width::Words => {
                for step in &mut steps {
                    self.step_into(step);
                }
            }
        }
        let rest = steps.into_remainder();
        if !rest.is_empty() {
            self.step_into(rest);
        }
    }

    /// Makes one step and copies as many of its bytes as fit.
    fn step_into(&mut self, out: &mut [u8]) {
        let mut step = [0; STEP_BYTES];
        for (i, bytes) in step.chunks_exact_mut(8).enumerate() {
            let (a, b) = (self.a[i], self.b[i]);
            bytes.copy_from_slice(&a.wrapping_add(b).to_le_bytes());
            let mixed = a ^ b;
            self.a[i] = a.rotate_left(24) ^ mixed ^ (mixed << 16);
            self.b[i] = mixed.rotate_left(37);
        }
        out.copy_from_slice(&step[..out.len()]);
    }
}

/// A vector of 64-bit words with the operations of a step.
///
/// # Safety
/// Every method needs a processor that supports the type's instructions.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
trait Vector: Copy {
    /// Number of words.
    const WORDS: usize;
    /// Reads [`Self::WORDS`] words, which need no alignment.
    unsafe fn load(from: *const u64) -> Self;
    /// Writes the vector, in little-endian order and without a need for alignment.
    unsafe fn store(self, to: *mut u8);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn shift_left_16(self) -> Self;
    unsafe fn rotate_left_24(self) -> Self;
    unsafe fn rotate_left_37(self) -> Self;
}

/// Fills whole steps with `N` vectors a step.
///
/// Always inlined, so that it is compiled with the instructions of its caller.
///
/// # Safety
/// The processor supports `V`, and `N` vectors are a step.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline(always)]
unsafe fn fill_steps<V: Vector, const N: usize>(lanes: &mut Lanes, steps: &mut std::slice::ChunksExactMut<'_, u8>) {
    const { assert!(N * V::WORDS == LANES, "the vectors of a step hold all lanes") };
    // SAFETY: by this function's contract the instructions are supported; the N vectors of V::WORDS words cover `a`, `b`
    // and a step exactly.
    unsafe {
        let mut a = [V::load(lanes.a.as_ptr()); N];
        let mut b = [V::load(lanes.b.as_ptr()); N];
        for i in 1..N {
            a[i] = V::load(lanes.a.as_ptr().add(i * V::WORDS));
            b[i] = V::load(lanes.b.as_ptr().add(i * V::WORDS));
        }
        for step in steps {
            for i in 0..N {
                a[i].add(b[i]).store(step.as_mut_ptr().add(i * V::WORDS * 8));
                let mixed = a[i].xor(b[i]);
                a[i] = a[i].rotate_left_24().xor(mixed).xor(mixed.shift_left_16());
                b[i] = mixed.rotate_left_37();
            }
        }
        for i in 0..N {
            a[i].store(lanes.a.as_mut_ptr().add(i * V::WORDS).cast());
            b[i].store(lanes.b.as_mut_ptr().add(i * V::WORDS).cast());
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Lanes, Vector, fill_steps};
    use std::arch::x86_64::*;
    use std::slice::ChunksExactMut;

    /// # Safety
    /// The processor supports AVX-512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn fill_avx512(lanes: &mut Lanes, steps: &mut ChunksExactMut<'_, u8>) {
        // SAFETY: by this function's contract.
        unsafe { fill_steps::<Avx512, 1>(lanes, steps) }
    }

    /// # Safety
    /// The processor supports AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn fill_avx2(lanes: &mut Lanes, steps: &mut ChunksExactMut<'_, u8>) {
        // SAFETY: by this function's contract.
        unsafe { fill_steps::<Avx2, 2>(lanes, steps) }
    }

    /// Eight words.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512(__m512i);

    /// Four words.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(__m256i);

    /// Two words.
    #[derive(Clone, Copy)]
    pub(super) struct Sse2(__m128i);

    /// Implements [`Vector`] by intrinsics; the safety of each call is the trait's.
    macro_rules! vector {
        ($type:ident, $words:literal, $load:ident, $store:ident, $add:ident, $xor:ident, $left:ident, $rotate_24:expr, $rotate_37:expr) => {
            impl Vector for $type {
                const WORDS: usize = $words;
                #[inline(always)]
                unsafe fn load(from: *const u64) -> Self {
                    // SAFETY: see the trait.
                    Self(unsafe { $load(from.cast()) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    // SAFETY: see the trait.
                    unsafe { $store(to.cast(), self.0) }
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: see the trait.
                    Self(unsafe { $add(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn xor(self, other: Self) -> Self {
                    // SAFETY: see the trait.
                    Self(unsafe { $xor(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn shift_left_16(self) -> Self {
                    // SAFETY: see the trait.
                    Self(unsafe { $left::<16>(self.0) })
                }
                #[inline(always)]
                unsafe fn rotate_left_24(self) -> Self {
                    // SAFETY: see the trait.
                    Self(unsafe { $rotate_24(self.0) })
                }
                #[inline(always)]
                unsafe fn rotate_left_37(self) -> Self {
                    // SAFETY: see the trait.
                    Self(unsafe { $rotate_37(self.0) })
                }
            }
        };
    }

    vector!(
        Avx512,
        8,
        _mm512_loadu_epi64,
        _mm512_storeu_si512,
        _mm512_add_epi64,
        _mm512_xor_si512,
        _mm512_slli_epi64,
        _mm512_rol_epi64::<24>,
        _mm512_rol_epi64::<37>
    );
    vector!(
        Avx2,
        4,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_add_epi64,
        _mm256_xor_si256,
        _mm256_slli_epi64,
        rotate_24_avx2,
        rotate_37_avx2
    );
    vector!(
        Sse2,
        2,
        _mm_loadu_si128,
        _mm_storeu_si128,
        _mm_add_epi64,
        _mm_xor_si128,
        _mm_slli_epi64,
        rotate_24_sse2,
        rotate_37_sse2
    );

    /// 24 bits are three bytes, so a byte shuffle rotates.
    ///
    /// # Safety
    /// The processor supports AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn rotate_24_avx2(words: __m256i) -> __m256i {
        const LOW: i64 = 0x04_03_02_01_00_07_06_05;
        const HIGH: i64 = 0x0c_0b_0a_09_08_0f_0e_0d;
        _mm256_shuffle_epi8(words, _mm256_set_epi64x(HIGH, LOW, HIGH, LOW))
    }

    /// # Safety
    /// The processor supports AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn rotate_37_avx2(words: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi64::<37>(words), _mm256_srli_epi64::<27>(words))
    }

    /// # Safety
    /// The processor supports SSE2.
    #[inline(always)]
    unsafe fn rotate_24_sse2(words: __m128i) -> __m128i {
        // SAFETY: by this function's contract.
        unsafe { _mm_or_si128(_mm_slli_epi64::<24>(words), _mm_srli_epi64::<40>(words)) }
    }

    /// # Safety
    /// The processor supports SSE2.
    #[inline(always)]
    unsafe fn rotate_37_sse2(words: __m128i) -> __m128i {
        // SAFETY: by this function's contract.
        unsafe { _mm_or_si128(_mm_slli_epi64::<37>(words), _mm_srli_epi64::<27>(words)) }
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod arm {
    use super::Vector;
    use std::arch::aarch64::*;

    /// Two words.
    #[derive(Clone, Copy)]
    pub(super) struct Neon(uint64x2_t);

    impl Vector for Neon {
        const WORDS: usize = 2;
        #[inline(always)]
        unsafe fn load(from: *const u64) -> Self {
            // SAFETY: see the trait.
            Self(unsafe { vld1q_u64(from) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: see the trait.
            unsafe { vst1q_u8(to, vreinterpretq_u8_u64(self.0)) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see the trait.
            Self(unsafe { vaddq_u64(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: see the trait.
            Self(unsafe { veorq_u64(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn shift_left_16(self) -> Self {
            // SAFETY: see the trait.
            Self(unsafe { vshlq_n_u64::<16>(self.0) })
        }
        #[inline(always)]
        unsafe fn rotate_left_24(self) -> Self {
            // SAFETY: see the trait. A shift right that inserts below the bits of a shift left.
            Self(unsafe { vsriq_n_u64::<40>(vshlq_n_u64::<24>(self.0), self.0) })
        }
        #[inline(always)]
        unsafe fn rotate_left_37(self) -> Self {
            // SAFETY: as above.
            Self(unsafe { vsriq_n_u64::<27>(vshlq_n_u64::<37>(self.0), self.0) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a job's content does not depend on the processor.
    /// Method: buffers of every length up to three steps and at every alignment, and one of 1 MiB, one after the other, so
    /// the state is compared, too; the portable words are the reference.
    #[test]
    fn every_width_gives_the_same_bytes() {
        let fills = |vectors: Vectors| -> Vec<u8> {
            let mut lanes = Lanes::new(7);
            let mut all = Vec::new();
            for length in (0..=3 * STEP_BYTES).chain([1 << 20]) {
                let at = all.len() + length % 64;
                all.resize(at + length, 0);
                lanes.fill(&mut all[at..], vectors);
            }
            all
        };
        let expected = fills(Vectors(Width::Words));
        assert!(Vectors::supported().len() > 1, "there is a vector to compare");
        for vectors in Vectors::supported() {
            assert!(fills(vectors) == expected, "{vectors:?} gives other bytes");
        }
    }

    /// Goal: every width still gives the same bytes after many buffers; what each costs is printed, and not judged: `cargo test
    /// --release --package trueio-engine --lib -- --nocapture cost_of_each_width`.
    /// Method: 101 rounds of 1,000 buffers of 4 KiB, and their median; two of 100 where the code is not optimized.
    #[test]
    fn cost_of_each_width_and_the_same_bytes_at_the_end() {
        let (rounds, buffers) = if cfg!(debug_assertions) { (2, 100) } else { (101, 1000) };
        let mut ends = Vec::new();
        for vectors in Vectors::supported() {
            let (mut lanes, mut buffer) = (Lanes::new(7), vec![0; 4096]);
            let mut times: Vec<_> = (0..rounds)
                .map(|_| {
                    let start = std::time::Instant::now();
                    (0..buffers).for_each(|_| lanes.fill(std::hint::black_box(&mut buffer), vectors));
                    start.elapsed().as_nanos() / buffers
                })
                .collect();
            times.sort_unstable();
            println!("{vectors:?}: {} ns for 4 KiB", times[rounds / 2]);
            ends.push(buffer);
        }
        assert!(ends.iter().all(|end| *end == ends[0]), "the widths differ");
    }

    /// The first words of one lane, computed by hand from the definition of xoroshiro128+.
    #[test]
    fn a_lane_is_xoroshiro128_plus() {
        let mut lanes = Lanes { a: [1; LANES], b: [2; LANES] };
        let mut out = [0; 2 * STEP_BYTES];
        lanes.fill(&mut out, Vectors::widest());
        let word = |at: usize| u64::from_le_bytes(out[at..at + 8].try_into().unwrap());
        // s0 = 1, s1 = 2: 3. Then s1 ^= s0 is 3, s0 = rotl(1, 24) ^ 3 ^ (3 << 16), s1 = rotl(3, 37).
        let (s0, s1) = ((1u64 << 24) ^ 3 ^ (3 << 16), 3u64 << 37);
        assert_eq!((word(0), word(STEP_BYTES - 8)), (3, 3));
        assert_eq!((word(STEP_BYTES), word(2 * STEP_BYTES - 8)), (s0.wrapping_add(s1), s0.wrapping_add(s1)));
    }
}
