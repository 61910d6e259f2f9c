// VS Code's notebook in a frame: its widget manager, and what its Jupyter extension does with a kernel's messages and around each
// output (microsoft/vscode-jupyter, src/kernels/execution and src/webviews/webview-side/ipywidgets). The kernel is one of the
// JupyterLab page around the frame. Defines `runCell(code)`, which fills `outputs` and the page with the outputs of the one cell.
async (anywidget) => {
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  const container = document.getElementById("container");
  const kernel = await parent.jupyterapp.serviceManager.kernels.startNew({ name: "python3" });
  (0, eval)(anywidget);
  const loader = {
    widgetsRegisteredInRequireJs: new Set(["anywidget"]),
    loadWidgetScript: async () => {},
    errorHandler: (...details) => console.error(...details),
    successHandler() {},
  };
  const manager = new vscIPyWidgets.WidgetManager(kernel, container, loader, () => {});

  async function show(data, node) {
    node.className = "output";
    const inner = document.createElement("div");
    node.replaceChildren(inner);
    const view = data[WIDGET];
    if (!view) {
      if (data["text/html"]) inner.innerHTML = data["text/html"];
      else inner.textContent = data.stream ?? data["text/plain"];
      return;
    }
    node.className += " cell-output-ipywidget-background";
    inner.className = "cell-output-ipywidget-background";
    while (!manager.has_model(view.model_id)) await new Promise((done) => setTimeout(done, 20));
    const model = await manager.get_model(view.model_id);
    await manager.display_view(view, await manager.create_view(model, { el: inner }), { node: inner });
  }

  window.runCell = async (code) => {
    const displayed = new Map();
    // The extension hears some time after the start of a run that the outputs of the last one were cleared: it then forgets the
    // display ids of the cell, which may be those of the new run.
    if (container.childElementCount) setTimeout(() => displayed.clear(), 300);
    container.replaceChildren();
    window.outputs = [];
    const add = (data, id) => {
      const box = document.createElement("div");
      const output = { data, node: document.createElement("div") };
      box.className = "output_container";
      box.append(output.node);
      container.append(box);
      outputs.push(output);
      if (id) displayed.set(id, output);
      show(data, output.node);
    };
    const future = kernel.requestExecute({ code }, false, { cellId: "cell" });
    future.onIOPub = ({ header, content }) => {
      const output = displayed.get(content.transient?.display_id);
      if (header.msg_type === "update_display_data" && output) show((output.data = content.data), output.node);
      else if (/^(display_data|execute_result)$/.test(header.msg_type)) add(content.data, content.transient?.display_id);
      else if (header.msg_type === "stream" && outputs.at(-1)?.data.stream) {
        const last = outputs.at(-1);
        show((last.data = { stream: last.data.stream + content.text }), last.node);
      } else if (header.msg_type === "stream") add({ stream: content.text });
      else if (header.msg_type === "error") add({ "text/plain": content.traceback.join("\n") });
    };
    await future.done;
  };
}
