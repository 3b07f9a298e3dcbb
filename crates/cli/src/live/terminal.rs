//! The terminal of the live view: taken over at the start, and restored however the program ends.

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::Color;
use ratatui_core::terminal::{Frame, Terminal};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Switches to the alternate screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Switches back, with a cursor and without colours.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// True while the terminal is taken over.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// The settings of stdin before; absent if it is no terminal.
static BEFORE: OnceLock<libc::termios> = OnceLock::new();

/// Restores the terminal, once. Makes only calls that a signal handler may make: write and tcsetattr.
fn give_back() {
    if !IS_TAKEN.swap(false, Relaxed) {
        return;
    }
    // SAFETY: write reads as many bytes of a constant as it has; tcsetattr reads settings that stay.
    unsafe {
        libc::write(libc::STDERR_FILENO, LEAVE.as_ptr().cast(), LEAVE.len());
        if let Some(before) = BEFORE.get() {
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before);
        }
    }
}

/// The byte that Ctrl-Z sends while the terminal is taken over.
pub(super) const SUSPEND: u8 = 0x1a;

/// A terminal that is taken over until this is dropped.
pub(super) struct Screen {
    terminal: Terminal<Ansi>,
    has_keys: bool,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// A system call failed.
    pub(super) fn take() -> io::Result<Self> {
        let has_keys = without_echo()?;
        let before = std::panic::take_hook();
        let owner = std::thread::current().id();
        std::panic::set_hook(Box::new(move |panic| {
            // A worker's panic is an outcome of the run, and is reported as one.
            let thread = std::thread::current();
            if thread.id() == owner || thread.name() == Some("live") {
                give_back();
                before(panic);
            }
        }));
        trueio_run::before_abrupt_exit(give_back);
        IS_TAKEN.store(true, Relaxed);
        io::stderr().write_all(ENTER)?;
        let screen = Self { terminal: Terminal::new(Ansi::default())?, has_keys };
        Ok(screen)
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render).map(drop)
    }

    /// Gives the terminal back, stops this process as Ctrl-Z does, and takes the terminal over again when it continues.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        give_back();
        // The default action stops all threads, and raise returns after that: the signal is this thread's own.
        // SAFETY: a plain call.
        unsafe { libc::raise(libc::SIGTSTP) };
        self.has_keys = without_echo()?;
        IS_TAKEN.store(true, Relaxed);
        io::stderr().write_all(ENTER)?;
        // Everything is drawn again.
        self.terminal.clear()
    }

    /// Returns the keys that were pressed since the last call.
    pub(super) fn keys(&self) -> Vec<u8> {
        let mut keys = vec![0; 16];
        // Reading returns at once: there is no minimum of characters.
        let count = if self.has_keys { rustix::io::read(io::stdin().as_fd(), &mut keys).unwrap_or(0) } else { 0 };
        keys.truncate(count);
        keys
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
        // The hook of the view would hide panics of workers of a later run.
        if !std::thread::panicking() {
            drop(std::panic::take_hook());
        }
    }
}

/// Switches off echo and line editing of stdin, and lets reads return at once. Signals keep their keys, except that Ctrl-Z is
/// read as [`SUSPEND`]. Returns false if stdin is no terminal: then there are no keys.
fn without_echo() -> io::Result<bool> {
    let stdin = io::stdin();
    let Ok(mut settings) = tcgetattr(stdin.as_fd()) else { return Ok(false) };
    // SAFETY: tcgetattr fills the settings that are handed to it; a failure leaves zeros, which are not stored.
    unsafe {
        let mut before: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(libc::STDIN_FILENO, &mut before) == 0 {
            BEFORE.get_or_init(|| before);
        }
    }
    settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    // 0 is _POSIX_VDISABLE on Linux: the terminal would be stopped as it is.
    settings.special_codes[SpecialCodeIndex::VSUSP] = 0;
    settings.special_codes[SpecialCodeIndex::VMIN] = 0;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin.as_fd(), OptionalActions::Now, &settings)?;
    Ok(true)
}

/// Draws with escape sequences that all terminals support (ECMA-48).
#[derive(Debug, Default)]
struct Ansi {
    /// What the next flush writes: a frame is one call.
    out: Vec<u8>,
}

impl Ansi {
    fn put(&mut self, text: &str) -> io::Result<()> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Backend for Ansi {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut color = Color::Reset;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.put(&format!("\x1b[{};{}H", y + 1, x + 1))?;
            }
            if cell.fg != color {
                color = cell.fg;
                // The view uses these two.
                self.put(if color == Color::Yellow { "\x1b[33m" } else { "\x1b[39m" })?;
            }
            self.put(cell.symbol())?;
            next = Some((x + 1, y));
        }
        if color != Color::Reset {
            self.put("\x1b[39m")?;
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.put("\x1b[?25l")
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.put("\x1b[?25h")
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // It is invisible, and each piece is drawn at its own position.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.put(&format!("\x1b[{};{}H", y + 1, x + 1))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.put("\x1b[2J")
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.put(match region {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        })
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(io::stderr())?;
        // A terminal that does not report its size.
        let or = |found: u16, usual: u16| if found == 0 { usual } else { found };
        Ok(Size::new(or(size.ws_col, 80), or(size.ws_row, 24)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        stderr.write_all(&self.out)?;
        self.out.clear();
        stderr.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not a test of its own: the one below runs it, and sees it fail.
    #[test]
    #[ignore = "it panics with the terminal taken over"]
    fn a_panic_while_the_terminal_is_taken_over() {
        let mut screen = Screen::take().expect("a terminal");
        screen
            .draw(|frame| frame.buffer_mut().set_string(0, 0, "drawn", ratatui_core::style::Style::new()))
            .expect("it draws");
        panic!("staged");
    }

    /// Goal: the message of a panic is readable, and the terminal is as it was.
    #[test]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
        let name = "live::terminal::tests::a_panic_while_the_terminal_is_taken_over";
        command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]).env("RUST_BACKTRACE", "0");
        let ran = trueio_testkit::typing_on_terminal(command, 80, &[]);
        assert!(ran.is_as_before, "{ran:?}");
        let (_, after) = ran.text.split_once("\x1b[?25h\x1b[?1049l").unwrap_or_else(|| panic!("{ran:?}"));
        assert!(after.contains("staged") && ran.text.contains("drawn"), "{ran:?}");
        assert!(!after.contains("\x1b[?1049"), "{ran:?}");
    }
}
