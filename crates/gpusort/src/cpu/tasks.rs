//! Tasks for all threads. They are boxed, so that `rayon` is compiled for them once, and not for
//! each type of keys and values, where it is most of the code.

use super::tuning::{MIN_TASK, TASKS_PER_THREAD};
use rayon::prelude::*;

/// What one thread does with a part of the elements.
type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs tasks on the threads of the current pool.
pub(super) fn run<'a, F: FnOnce() + Send + 'a>(tasks: impl Iterator<Item = F>) {
    run_all(tasks.map(|task| Box::new(task) as Task<'a>).collect());
}

fn run_all(tasks: Vec<Task<'_>>) {
    tasks.into_par_iter().for_each(|task| task());
}

/// Returns the number of elements of a task, of `n` that all threads share.
pub(super) fn task_size(n: usize) -> usize {
    let tasks = TASKS_PER_THREAD * rayon::current_num_threads();
    n.div_ceil(tasks).max(MIN_TASK)
}
