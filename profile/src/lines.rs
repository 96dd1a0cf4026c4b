//! The functions of a stack as lines, as a trace file has them.

use crate::code::{Code, Stack};

/// Most functions of a stack.
const FUNCTIONS: usize = 32;
/// The module that a traced call returns to. The stack ends there; the trace has the calls around it.
const TRACER: &str = "libringmark_functions.so";
/// Most letters of a name.
const LETTERS: usize = 200;

/// The functions of a stack, the innermost first; of the tracer's own code its module alone.
pub(crate) fn functions(stack: &Stack, code: &Code) -> Vec<String> {
    let functions = stack.functions.iter().take(FUNCTIONS);
    let functions = functions.map(|id| code.function(*id));
    let mut functions = functions.peekable();
    let of_tracer = functions.next_if(|function| function.module == TRACER);
    if of_tracer.is_some() {
        return vec![TRACER.to_owned()];
    }
    let functions = functions.take_while(|function| function.module != TRACER);
    functions.map(|function| line(&function.name)).collect()
}

/// A text as one line.
pub(crate) fn line(text: &str) -> String {
    text.replace('\n', " ").chars().take(LETTERS).collect()
}
