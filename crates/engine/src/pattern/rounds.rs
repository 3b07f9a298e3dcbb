//! Several files in rounds: one whose pass is over waits until those of all the others are, and a limited number is in use
//! at a time (`openfiles`).
//!
//! Without rounds, files of unlike lengths would be read or written unlike often: the short ones again while the long
//! ones are not done yet.
//!
//! Source: fio(1), `openfiles`, `file_service_type`, and what fio 3.33 reads, by strace.

use super::distribution::below;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Which of several files the next request goes to.
#[derive(Debug, Clone)]
pub(super) struct Rounds {
    file_count: u32,
    /// Files that are in use at a time.
    most: usize,
    is_random: bool,
    /// Those in use, in the order in which they began, and whether their pass is over: as in fio, such a one makes room
    /// when its turn comes again.
    in_use: Vec<(u32, bool)>,
    /// Those that the round has not come to, the next one last.
    to_come: Vec<u32>,
    /// Which of those in use is next.
    at: usize,
}

impl Rounds {
    /// Of `file_count` files, `most` are in use at a time.
    pub(super) fn new(file_count: usize, most: usize, is_random: bool) -> Self {
        let file_count = u32::try_from(file_count).expect("the plan holds at most 65,536 files");
        assert!(file_count > 0 && most > 0, "there is a file, and it may be used");
        let in_use = Vec::with_capacity(most.min(file_count as usize));
        let to_come = Vec::with_capacity(file_count as usize);
        Self { file_count, most, is_random, in_use, to_come, at: 0 }
    }

    /// The file of the next request.
    pub(super) fn next(&mut self, rng: &mut Xoshiro256PlusPlus) -> usize {
        loop {
            if self.in_use.is_empty() && self.to_come.is_empty() {
                self.to_come.extend((0..self.file_count).rev());
            }
            let has_room = self.in_use.len() < self.most && !self.to_come.is_empty();
            if self.is_random {
                let more = if has_room { self.to_come.len() } else { 0 };
                self.at = below(rng, (self.in_use.len() + more) as u64) as usize;
                if let Some(new) = self.at.checked_sub(self.in_use.len()) {
                    self.at = self.in_use.len();
                    self.in_use.push((self.to_come.swap_remove(new), false));
                }
            } else if self.at == self.in_use.len() {
                match has_room {
                    true => self.in_use.extend(self.to_come.pop().map(|file| (file, false))),
                    false => self.at = 0,
                }
            }
            let Some((file, is_over)) = self.in_use.get(self.at).copied() else { continue };
            if is_over {
                self.in_use.remove(self.at);
                continue;
            }
            self.at += 1;
            return file as usize;
        }
    }

    /// The pass over the file of the last request is over.
    pub(super) fn leave(&mut self) {
        self.in_use[self.at - 1].1 = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// The files of all requests of some rounds, where file `i` has `blocks[i]` of them.
    fn order(blocks: &[u32], most: usize, is_random: bool, rounds: u32) -> Vec<usize> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut files = Rounds::new(blocks.len(), most, is_random);
        let mut left = blocks.to_vec();
        let mut order = Vec::new();
        for _ in 0..blocks.iter().sum::<u32>() * rounds {
            let file = files.next(&mut rng);
            order.push(file);
            left[file] -= 1;
            if left[file] == 0 {
                files.leave();
                left[file] = blocks[file];
            }
        }
        order
    }

    /// As fio 3.33 goes through files of two blocks, and through files of unlike lengths.
    #[test]
    fn so_many_files_are_in_use_at_a_time_and_the_next_begins_when_one_is_over() {
        assert_eq!(order(&[2, 2, 2, 2], 2, false, 2), [[0, 1, 0, 1, 2, 3, 2, 3]; 2].concat());
        assert_eq!(order(&[2, 2, 2], 3, false, 1), [0, 1, 2, 0, 1, 2]);
        assert_eq!(order(&[2, 9, 5], 2, false, 1), [0, 1, 0, 1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1]);
        assert_eq!(order(&[1, 3, 2], 2, false, 2), [[0, 1, 1, 2, 1, 2]; 2].concat());
        assert_eq!(order(&[2, 4], 9, false, 1), [0, 1, 0, 1, 1, 1]);
        assert_eq!(order(&[1, 2, 1], 1, false, 1), [0, 1, 1, 2]);
    }

    #[test]
    fn each_round_goes_once_over_every_file_whatever_the_order() {
        let blocks = [5, 1, 9, 3, 3, 70];
        for (most, is_random) in [(1, true), (2, true), (6, true), (2, false), (6, false)] {
            let all = order(&blocks, most, is_random, 3);
            for round in all.chunks(91) {
                let of = |file| round.iter().filter(|at| **at == file).count() as u32;
                assert_eq!([of(0), of(1), of(2), of(3), of(4), of(5)], blocks, "{most} {is_random}");
                let place = |file, last: bool| match last {
                    true => round.iter().rposition(|at| *at == file).expect("it came"),
                    false => round.iter().position(|at| *at == file).expect("it came"),
                };
                for at in 0..round.len() {
                    let in_use = (0..6).filter(|file| place(*file, false) <= at && at <= place(*file, true)).count();
                    assert!(in_use <= most, "{in_use} of {most} {is_random}");
                }
            }
            assert_eq!(all[..91] != all[91..182], is_random, "drawn again in each round");
        }
    }
}
