// Light or dark, as the host says: JupyterLab, VS Code, Colab, marimo, else the system.

export function hostTheme(doc, prefersDark) {
  const body = doc.body,
    root = doc.documentElement;
  const lab = body && body.dataset.jpThemeLight;
  if (lab) return lab === "false" ? "dark" : "light";
  const names = `${body ? body.className : ""} ${root.className} ${(body && body.dataset.vscodeThemeKind) || ""}`;
  if (/vscode-(dark|high-contrast)(?!-light)/.test(names)) return "dark";
  if (/vscode-(light|high-contrast-light)/.test(names)) return "light";
  const said = root.getAttribute("theme") || root.dataset.theme || (body && body.dataset.theme) || "";
  if (/dark/.test(said)) return "dark";
  if (/light/.test(said)) return "light";
  if (/(^|\s)(dark|dark-theme)(\s|$)/.test(names)) return "dark";
  if (/(^|\s)(light|light-theme)(\s|$)/.test(names)) return "light";
  return prefersDark ? "dark" : "light";
}

// Keep `data-theme` of the view right while the host changes; returns how to stop.
export function followTheme(view) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    view.dataset.theme = hostTheme(document, system.matches);
  };
  const watch = new MutationObserver(apply);
  const options = {
    attributes: true,
    attributeFilter: ["class", "theme", "data-theme", "data-jp-theme-light", "data-vscode-theme-kind"],
  };
  watch.observe(document.documentElement, options);
  watch.observe(document.body, options);
  system.addEventListener("change", apply);
  apply();
  return () => {
    watch.disconnect();
    system.removeEventListener("change", apply);
  };
}
