// Light or dark, as the host says: JupyterLab, VS Code, Colab, marimo, else the system.

/**
 * The theme of a page: "light" or "dark".
 * @param {Pick<Document, "body" | "documentElement">} page
 * @param {boolean} prefersDark what the system says
 */
export function hostTheme({ body, documentElement: root }, prefersDark) {
  const lab = body?.dataset.jpThemeLight;
  if (lab) return lab === "false" ? "dark" : "light";
  const names = [body?.className, root.className, body?.dataset.vscodeThemeKind].join(" ");
  if (/vscode-(light|high-contrast-light)/.test(names)) return "light"; // also has the class vscode-high-contrast
  if (/vscode-(dark|high-contrast)/.test(names)) return "dark";
  const theme = root.getAttribute("theme") || root.dataset.theme || body?.dataset.theme || "";
  if (/dark/.test(theme)) return "dark";
  if (/light/.test(theme)) return "light";
  if (/(^|\s)(dark|dark-theme)(\s|$)/.test(names)) return "dark";
  if (/(^|\s)(light|light-theme)(\s|$)/.test(names)) return "light";
  return prefersDark ? "dark" : "light";
}

const WATCHED = ["class", "theme", "data-theme", "data-jp-theme-light", "data-vscode-theme-kind"];

/**
 * Set `data-theme` of the view, again whenever the host changes; returns a function that stops this.
 * @param {HTMLElement} view
 */
export function followTheme(view) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    view.dataset.theme = hostTheme(document, system.matches);
  };
  const observer = new MutationObserver(apply);
  const options = { attributes: true, attributeFilter: WATCHED };
  observer.observe(document.documentElement, options);
  observer.observe(document.body, options);
  system.addEventListener("change", apply);
  apply();
  return () => {
    observer.disconnect();
    system.removeEventListener("change", apply);
  };
}
