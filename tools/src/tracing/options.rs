//! Options that name functions and say what is recorded of their calls, and the same as lines of a
//! request.

use std::time::Duration;

use clap::ValueEnum;
use ringmark_format::tracer_text::RequestLine;
use ringmark_function_tracer::selection::{Selection, Syntax};

use ringmark_console::Failure;
use ringmark_console::units::{parse_min_time, whole_ns};

/// Options that name functions.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FunctionNames {
    /// Functions to trace: NAME or NAME@MODULE, '*' is any text; may be given several times
    #[arg(short = 'F', long, value_name = "PATTERN")]
    pub(crate) filter: Vec<String>,
    /// Functions to leave out, whatever --filter says; may be given several times
    #[arg(short = 'N', long, value_name = "PATTERN")]
    pub(crate) notrace: Vec<String>,
    /// How patterns are written
    #[arg(long = "match", value_name = "SYNTAX", default_value = "glob")]
    pub(crate) syntax: PatternSyntax,
    /// Trace every function that can be traced
    #[arg(long, conflicts_with = "filter")]
    pub(crate) all_functions: bool,
}

/// How the patterns of options are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatternSyntax {
    /// '*' is any text, '?' any character
    #[default]
    Glob,
    /// A regular expression that may match anywhere in the name
    Regex,
}

impl From<PatternSyntax> for Syntax {
    fn from(from: PatternSyntax) -> Self {
        match from {
            PatternSyntax::Glob => Self::Glob,
            PatternSyntax::Regex => Self::Regex,
        }
    }
}

impl PatternSyntax {
    /// As a line of a request, which holds for the patterns after it.
    pub(crate) fn line(self) -> RequestLine<'static> {
        RequestLine::Match(self.into())
    }
}

/// Options that say which calls of these functions are recorded.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub(crate) struct CallChoice {
    /// Record calls up to N deep, the outermost being 1; with --inside, that function's are 1; 'off' removes the limit
    #[arg(short = 'D', long, value_name = "N", value_parser = depth)]
    pub(crate) max_depth: Option<u32>,
    /// Record this function's calls and all that they call, and nothing else; may be given several times;
    /// '' records all again
    #[arg(long, value_name = "PATTERN")]
    pub(crate) inside: Vec<String>,
    /// Record this function's calls and those that led to them, each when it ends; may be given several
    /// times; '' records all again
    #[arg(long, value_name = "PATTERN")]
    pub(crate) caller: Vec<String>,
}

/// Parses how deep; 0 is any depth.
fn depth(text: &str) -> Result<u32, String> {
    if text == "off" {
        return Ok(0);
    }
    let depth = text.parse().ok().filter(|depth| *depth > 0);
    depth.ok_or_else(|| format!("found {text:?}, expected a number from 1 on or 'off'"))
}

impl CallChoice {
    /// Whether no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the patterns before they are given to a program.
    ///
    /// # Errors
    /// A pattern is wrong: which one, and why.
    pub(crate) fn check(&self, syntax: PatternSyntax) -> Result<(), Failure> {
        check_patterns("inside", given(&self.inside), syntax)?;
        check_patterns("caller", given(&self.caller), syntax)
    }

    /// As lines of a request. An empty pattern comes first: those after it hold.
    pub(crate) fn lines(&self, syntax: PatternSyntax) -> Vec<RequestLine<'_>> {
        let mut lines: Vec<_> = self
            .max_depth
            .map(RequestLine::MaxDepth)
            .into_iter()
            .collect();
        if !(self.inside.is_empty() && self.caller.is_empty()) {
            lines.push(syntax.line());
        }
        lines.extend(self.inside.iter().map(|text| RequestLine::Inside(text)));
        lines.extend(self.caller.iter().map(|text| RequestLine::Caller(text)));
        lines
    }

    /// As lines of a start that owes nothing to an earlier one: what is not given gets its default.
    pub(crate) fn all_lines(&self, syntax: PatternSyntax) -> Vec<RequestLine<'_>> {
        let mut lines = vec![
            RequestLine::MaxDepth(0),
            RequestLine::Inside(""),
            RequestLine::Caller(""),
        ];
        lines.extend(self.lines(syntax));
        lines
    }
}

/// Patterns that name functions.
fn given(patterns: &[String]) -> impl Iterator<Item = &String> {
    patterns.iter().filter(|pattern| !pattern.is_empty())
}

/// Checks the patterns of an option.
fn check_patterns<'a>(
    option: &str,
    patterns: impl IntoIterator<Item = &'a String>,
    syntax: PatternSyntax,
) -> Result<(), Failure> {
    for pattern in patterns {
        if pattern.contains('\n') {
            let text = format!("--{option}: a pattern cannot hold a line break");
            return Err(Failure::usage(text));
        }
        Selection::default()
            .want(pattern, syntax.into())
            .map_err(|error| Failure::usage(format!("--{option}: {error}")))?;
    }
    Ok(())
}

/// Options that say what is recorded of a call.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub(crate) struct CallDetail {
    /// Record the first N integer arguments of each call
    #[arg(short = 'A', long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=6))]
    pub(crate) args: Option<u8>,
    /// Record the return value of each call
    #[arg(short = 'R', long)]
    pub(crate) result: bool,
    /// Record only calls that take at least this long, such as 100us
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_min_time)]
    pub(crate) min_time: Option<Duration>,
    /// Switch the hottest functions off when tracing takes more of the program's CPU time than this,
    /// such as 2%; 'off' removes the limit
    #[arg(long, value_name = "PERCENT", value_parser = budget)]
    pub(crate) budget: Option<u64>,
}

/// Parses percents as millionths; 0 is no limit.
fn budget(text: &str) -> Result<u64, String> {
    if text == "off" {
        return Ok(0);
    }
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let percent = number.filter(|percent: &f64| (0.0001..=100.0).contains(percent));
    let percent = percent.ok_or_else(|| format!("found {text:?}, expected percents or 'off'"))?;
    Ok((percent * 1e4).round() as u64)
}

impl FunctionNames {
    /// Whether no function is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.notrace.is_empty() && !self.all_functions
    }

    /// The same names, or all functions if none is named: those of a program that is started for it.
    pub(crate) fn or_all(&self) -> Self {
        let mut names = self.clone();
        names.all_functions |= names.filter.is_empty();
        names
    }

    /// Checks the patterns before they are given to a program.
    ///
    /// # Errors
    /// A pattern is wrong: which one, and why.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        check_patterns("filter", &self.filter, self.syntax)?;
        check_patterns("notrace", &self.notrace, self.syntax)
    }

    /// Checks the patterns, and that there are any.
    ///
    /// # Errors
    /// No function is named, or a pattern is wrong.
    pub(crate) fn require(&self) -> Result<(), Failure> {
        if self.filter.is_empty() && !self.all_functions {
            return Err(Failure::usage(
                "no functions were named: expected --filter PATTERN, or --all-functions",
            ));
        }
        self.check()
    }

    /// As lines of a request.
    pub(crate) fn lines(&self) -> Vec<RequestLine<'_>> {
        let mut lines = Vec::new();
        if self.syntax == PatternSyntax::Regex {
            lines.push(self.syntax.line());
        }
        lines.extend(self.filter.iter().map(|text| RequestLine::Filter(text)));
        lines.extend(self.notrace.iter().map(|text| RequestLine::Notrace(text)));
        if self.all_functions {
            // Last: it is a glob even if the others are regular expressions.
            lines.extend([PatternSyntax::Glob.line(), RequestLine::Filter("*")]);
        }
        lines
    }
}

impl CallDetail {
    /// As lines of a request.
    pub(crate) fn lines(&self) -> Vec<RequestLine<'static>> {
        let lines = [
            self.args.map(RequestLine::Args),
            self.result.then_some(RequestLine::Result(true)),
            self.min_time.map(whole_ns).map(RequestLine::MinNs),
            self.budget.map(RequestLine::BudgetPpm),
        ];
        lines.into_iter().flatten().collect()
    }

    /// As lines of a start that owes nothing to an earlier one: what is not given gets its default.
    pub(crate) fn all_lines(&self) -> Vec<RequestLine<'static>> {
        vec![
            RequestLine::Args(self.args.unwrap_or(0)),
            RequestLine::Result(self.result),
            RequestLine::MinNs(self.min_time.map_or(0, whole_ns)),
            RequestLine::BudgetPpm(self.budget.unwrap_or(0)),
        ]
    }

    /// Whether no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_as_lines() {
        let names = FunctionNames {
            filter: vec!["a*".into(), "b@libz*".into()],
            notrace: vec!["ab".into()],
            ..FunctionNames::default()
        };
        let expected = [
            RequestLine::Filter("a*"),
            RequestLine::Filter("b@libz*"),
            RequestLine::Notrace("ab"),
        ];
        assert_eq!(names.lines(), expected);
        assert!(names.require().is_ok());
        let all = FunctionNames {
            all_functions: true,
            notrace: vec!["^x".into()],
            syntax: PatternSyntax::Regex,
            ..FunctionNames::default()
        };
        let expected = [
            RequestLine::Match(Syntax::Regex),
            RequestLine::Notrace("^x"),
            RequestLine::Match(Syntax::Glob),
            RequestLine::Filter("*"),
        ];
        assert_eq!(all.lines(), expected);
        let but_one = FunctionNames {
            all_functions: false,
            ..all.clone()
        };
        assert_eq!(but_one.or_all().lines(), all.lines());
        assert!(!names.or_all().all_functions);
        let wrong = FunctionNames {
            filter: vec!["(".into()],
            syntax: PatternSyntax::Regex,
            ..FunctionNames::default()
        };
        assert!(wrong.check().is_err());
        assert!(FunctionNames::default().require().is_err());
        assert_eq!(budget("2%"), Ok(20_000));
        assert_eq!((budget("0.5"), budget("off")), (Ok(5000), Ok(0)));
        assert!(budget("0").is_err() && budget("200%").is_err());
    }

    #[test]
    fn a_choice_of_calls_as_lines() {
        let choice = CallChoice {
            max_depth: depth("2").ok(),
            inside: vec!["a*".into()],
            ..CallChoice::default()
        };
        let expected = [
            RequestLine::MaxDepth(2),
            RequestLine::Match(Syntax::Regex),
            RequestLine::Inside("a*"),
        ];
        assert_eq!(choice.lines(PatternSyntax::Regex), expected);
        assert_eq!(choice.all_lines(PatternSyntax::Regex)[3..], expected);
        assert!(choice.check(PatternSyntax::Regex).is_ok());
        assert_eq!(
            (
                depth("off"),
                CallChoice::default().lines(PatternSyntax::Glob)
            ),
            (Ok(0), vec![])
        );
        assert!(depth("0").is_err() && depth("x").is_err());
        let wrong = CallChoice {
            caller: vec!["(".into()],
            ..CallChoice::default()
        };
        assert!(wrong.check(PatternSyntax::Regex).is_err() && !wrong.is_empty());
        let none = CallChoice {
            caller: vec![String::new()],
            ..CallChoice::default()
        };
        assert!(none.check(PatternSyntax::Glob).is_ok());
    }
}
