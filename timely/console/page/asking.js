// Questions to the server, one answer each.

/** Return the answer as an object; {error} if there is none. */
export async function ask(path, options = {}) {
  try {
    const answer = await fetch(path, { credentials: "same-origin", ...options });
    const text = await answer.text();
    try {
      return JSON.parse(text);
    } catch {
      return { error: text };
    }
  } catch {
    return { error: "the server of this page does not answer" };
  }
}
