// Built from widgets/frontend by npm run build.
var SVG_NS="http://www.w3.org/2000/svg";function fill(node,props,children=[]){for(let[name,value]of Object.entries(props))
value==null||value===!1||(typeof value=="function"?node.addEventListener(name.slice(2),value):name==="text"?node.textContent=
String(value):node.setAttribute(name==="cls"?"class":name,value===!0?"":String(value)));for(let child of children.flat())
child!=null&&child!==!1&&node.append(child);return node}var h=(tag,props={},...children)=>fill(document.createElement(tag),
props,children),s=(tag,props={},...children)=>fill(document.createElementNS(SVG_NS,tag),props,children),button=(cls,text,onclick,props={},...children)=>h(
"button",{cls,type:"button",text,onclick,...props},...children),label=(cls,x,y,text,anchor)=>text?s("text",{cls:cls||null,
x,y,text,"text-anchor":anchor}):null,withCode=text=>text.split("`").map((part,i)=>i%2?h("code",{text:part}):part.replace(
/(\d) (?=[nµm]?s\b)/g,"$1 ")),gives=text=>h("i",{cls:"dyn-gives",style:`--ch:${text.length}`},h("bdi",{text})),classOf=name=>/^(.*?)((?:[\w<>]+\.)*[\w<>]+)(\.[^.]+)$/.
exec(name)?.slice(1)||["","",name];function saidOnce(name,above=""){let[before,owner,own]=classOf(name);return owner&&classOf(
above)[1]===owner?before+own:name}function nameParts(name,above){let[before,owner,own]=classOf(saidOnce(name,above));return h(
"b",{cls:"dyn-name"},before,owner&&gives(owner),own)}function placeParts(place,above=""){let[,file,line]=/^(.*?)((?::\d+){0,2})$/.
exec(place)||["",place,""];return h("span",{cls:"dyn-place"},!(line&&above.startsWith(`${file}:`))&&gives(file),line)}function markup(text){
let template=h("template");return template.innerHTML=text,template.content}var OPTION={role:"option","aria-selected":"fa\
lse",tabindex:"-1"},closest=(event,selector)=>event.target.closest(selector),idOf=node=>node?.dataset.id||"";function handled(event){
event.preventDefault(),event.stopPropagation()}function exclusive(name){let marked=new Set;return nodes=>{let now=new Set(
nodes);for(let node of marked)now.has(node)||node.setAttribute(name,"false");for(let node of now)marked.has(node)||node.
setAttribute(name,"true");marked=now}}function reveal(box,node,center=!1){if(!node)return;let outer=box.getBoundingClientRect(),
inner=node.getBoundingClientRect(),top=inner.top-outer.top,left=inner.left-outer.left,seen=innerHeight-outer.top,height=center&&
seen>6*inner.height&&seen<outer.height?seen:outer.height;if((top<0||top+inner.height>height)&&(center?box.scrollTop+=top-
(height-inner.height)/2:box.scrollTop+=top<0?top-8:top+inner.height-outer.height+8),left<0||left+inner.width>outer.width){
let wide=inner.width>outer.width;box.scrollLeft+=left<0||wide?left-12:left+inner.width-outer.width+12}}async function copyText(text){
try{return await navigator.clipboard.writeText(text),!0}catch{let area=h("textarea",{style:"position:fixed;opacity:0"});
area.value=text,document.body.append(area),area.select();let done=document.execCommand("copy");return area.remove(),done}}
function roving(box,selector,{arrows="vertical",enter}={}){let stop=null,mark=item=>{stop&&stop!==item&&stop.setAttribute(
"tabindex","-1"),stop=item,stop.setAttribute("tabindex","0")};return box.addEventListener("keydown",given=>{let event=given,
items=[...box.querySelectorAll(selector)],at=items.indexOf(closest(event,selector));if(at<0||event.altKey||event.ctrlKey||
event.metaKey)return;let moves={...arrows!=="horizontal"&&{ArrowUp:at-1,ArrowDown:at+1},...arrows!=="vertical"&&{ArrowLeft:at-
1,ArrowRight:at+1},Home:0,End:items.length-1},item=items[moves[event.key]];if(item)mark(item),item.focus();else if(enter&&
(event.key==="Enter"||event.key===" "))enter(items[at]);else if(!(event.key in moves))return;handled(event)}),box.addEventListener(
"focusin",event=>{let item=closest(event,selector);item&&mark(item)}),mark}var plural=(n,word)=>`${n} ${word}${n===1?"":"s"}`;function search(content,query){let words=query.trim().toLowerCase();if(!words)
return[];let line=/^(?:line\s*|:|l)?(\d+)$/.exec(words),onLine=line?idsOnLine(content.sources,Number(line[1])):new Set,found=[];
for(let[id,detail]of Object.entries(content.details))(line?detail.line===Number(line[1])||onLine.has(id):`${detail.title}\
 ${detail.code} ${detail.place} ${detail.kind}`.toLowerCase().includes(words))&&found.push(id);return found}function idsOnLine(sources,number){
let lines=sources.flatMap(file=>file.lines.filter(line=>line.line===number));return new Set(lines.flatMap(line=>[line.id,
...(line.marks||[]).map(mark=>mark.id)]))}function step(picture2,id,key){let all=picture2.shapes,here=all.find(shape=>shape.
id===id);if(!here)return all.length?all[0].id:"";let[x,y]=middle(here),linked=new Set;for(let arrow of picture2.arrows)arrow.
source===id&&linked.add(arrow.target),arrow.target===id&&linked.add(arrow.source);let best="",least=1/0;for(let shape of all){
if(shape.id===id)continue;let[a,b]=middle(shape),ahead={ArrowDown:b-y,ArrowUp:y-b,ArrowRight:a-x,ArrowLeft:x-a}[key],aside=Math.
abs(key==="ArrowDown"||key==="ArrowUp"?a-x:b-y);if(!(ahead>1))continue;let cost=(ahead+2.5*aside)*(linked.has(shape.id)?
.3:1);cost<least&&([best,least]=[shape.id,cost])}return best||id}function middle({kind,x,y,w,h:h2}){return[x+w/2,["graph",
"break"].includes(kind)?y+h2/2:y+12]}function inSight(rows,open){let hidden=1/0;return rows.flatMap(({depth},at)=>depth>
hidden?[]:(hidden=open.has(at)?1/0:depth,[at]))}function sourceText(sources,{file,start,end}){let found=sources.find(f=>f.
file===file);return(found?found.lines.filter(l=>l.line>=start&&l.line<=end):[]).flatMap((l,i)=>i&&l.gap?["...",l.text]:[
l.text]).join(`
`)}function parseLink(hash){let match=/^#?([a-z]+\d+)(?:\/(\w+))?$/.exec(hash||"");return match?{id:match[1],part:match[2]||
""}:null}var linkTo=(id,part)=>`#${id}${part?"/"+part:""}`;function pending(){let settings={},regions=new Map;return{settings,
regions,set(name,value,now){value===now?delete settings[name]:settings[name]=value},region(target,set){regions.get(target)===
set?regions.delete(target):regions.set(target,set)},get count(){return Object.keys(settings).length+regions.size},request(more={}){
return{kind:"run_again",settings:{...settings,...more},regions:[...regions].map(([target,set])=>({target,set}))}},clear(){
for(let name of Object.keys(settings))delete settings[name];regions.clear()}}}function rounded(points,radius){let path=`\
M${points[0][0]} ${points[0][1]}`;for(let i=1;i+1<points.length;i++){let[[ax,ay],[x2,y2],[bx,by]]=points.slice(i-1,i+2),
before=Math.hypot(ax-x2,ay-y2),after=Math.hypot(bx-x2,by-y2),r=Math.min(radius,before/2,after/2);if(r<.5){path+=`L${x2} ${y2}`;
continue}let toward=(from,to,length)=>(to+(from-to)*r/length).toFixed(1);path+=`L${toward(ax,x2,before)} ${toward(ay,y2,
before)}`,path+=`Q${x2} ${y2} ${toward(bx,x2,after)} ${toward(by,y2,after)}`}let[x,y]=points[points.length-1];return path+
`L${x} ${y}`}function bytesOf(text){let bytes=new Uint8Array(text.length);for(let i=0;i<text.length;i++)bytes[i]=text.charCodeAt(
i);return bytes}function unzipped(data){let bytes=typeof data=="string"?bytesOf(atob(data)):data;return new Response(new Blob(
[bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json()}function clock(seconds){return seconds<.1?`${Math.
round(seconds*1e3)} ms`:seconds<10?`${seconds.toFixed(1)} s`:`${Math.round(seconds)} s`}var ROW=22,HEIGHT=330,SPARE=3,KINDS={input:"input",param:"parameter",point:"operation",collective:"collective, wait",output:"\
output"},heatStyle=({heat})=>heat===void 0?null:`--h:${heat}%`;function listRow(node,i,pressed,onclick){return h("div",{
"aria-pressed":String(pressed),cls:`dyn-fxrow dyn-fx-${node.kind}`,role:"button",tabindex:"-1",title:node.full,style:`to\
p:${i*ROW}px`,"data-i":i,onclick},h("i",{cls:"dyn-dot"}),h("b",{cls:"dyn-end"},h("bdi",{text:node.name})),h("span",{cls:"\
dyn-end"},h("bdi",{text:node.op==="placeholder"?"input":node.target})),h("span",{cls:"dyn-duration",style:heatStyle(node),
text:node.time}),h("span",{cls:"dyn-val",text:node.value}),h("span",{cls:"dyn-at dyn-end"},h("bdi",{text:node.place||""})))}
function listView(nodes,point,start){let inner=h("div",{style:`height:${nodes.length*ROW}px;position:relative`}),box=h("\
div",{cls:`dyn-fxlist${nodes.some(node=>node.time)?" dyn-timed":""}`,tabindex:"0",role:"group","aria-label":`${plural(nodes.
length,"node")}; use the arrow keys to choose one`,style:`height:${Math.min(HEIGHT,nodes.length*ROW+2)}px`},inner),rows=new Map,
now=start,from=0,press=(i,on)=>{let row2=rows.get(i);row2&&row2.setAttribute("aria-pressed",String(on))},choose=i=>{press(
now,!1),now=i,point(i),draw(),box.focus({preventScroll:!0}),press(i,!0)};function draw(){let first=Math.max(0,Math.floor(
box.scrollTop/ROW)-SPARE),end=Math.min(nodes.length,first+Math.ceil(HEIGHT/ROW)+2*SPARE);for(let[i,row2]of rows)i>=first&&
i<end||(row2.remove(),rows.delete(i));let added=[];for(let i=first;i<end;i++){if(rows.has(i))continue;let row2=listRow(nodes[i],
i,i===now,()=>choose(i));rows.set(i,row2),added.push(row2)}inner[first<from?"prepend":"append"](...added),from=first}return box.
addEventListener("keydown",event=>{let to={ArrowDown:now+1,ArrowUp:now-1,Home:0,End:nodes.length-1}[event.key];if(!nodes[to])
return;let top=to*ROW;(top<box.scrollTop||top+ROW>box.scrollTop+box.clientHeight)&&(box.scrollTop=to<now?top:top+ROW-box.
clientHeight),choose(to),handled(event)}),box.addEventListener("scroll",draw),requestAnimationFrame(()=>{box.scrollTop=start*
ROW}),draw(),box}function drawingOf(picture2,nodes){let{width,height}=picture2,boxes=picture2.boxes.map(([x,y,w,h2],i)=>boxOf(
picture2,nodes,i,{x,y,w,h:h2})),arrows=picture2.edges.map((points,i)=>{let[source,target]=picture2.joined[i];return{points,
source:boxes[source].id,target:boxes[target].id}});return{width,height,boxes,arrows:arrows.filter(arrow=>arrow.points.length>
1)}}function boxOf(picture2,nodes,i,rectangle){let fold=picture2.folds?.[i],at=fold?fold.first:picture2.first+i,shape={at,
...rectangle,title:picture2.titles[i],note:picture2.notes[i]};return fold?{...shape,id:`${at}+${fold.count}`,kind:fold.name===
"inputs"?"input":"fold",full:`${fold.name}: ${fold.count} nodes`,heat:fold.heat,inside:fold.inside}:{...nodes[at],...shape,
id:String(at)}}var isFold=box=>box.id.includes("+");function boxShape(box){let{x,y,w,h:h2,title,note,time,kind}=box,rectangle=s(
"rect",{x,y,width:w,height:h2,rx:kind==="input"||kind==="output"?14:5});if(isFold(box)){let mark=s("path",{cls:"dyn-fold",
d:`M${x+13} ${y+h2/2-4.5}v9l6 -4.5z`});return[rectangle,mark,label("",x+26,y+17,title),label("dyn-fxval",x+26,y+31,note)]}
let middle2=x+w/2;return[rectangle,label("",middle2,y+(time?17:h2/2+4),title,"middle"),label("dyn-fxval",middle2,y+31,time,
"middle"),label("dyn-fxval",middle2,y+h2+11,note,"middle")]}function boxNode(box){let props={cls:`dyn-fxnode dyn-fx-${box.
kind}${box.heat===void 0?"":" dyn-hot"}`,style:heatStyle(box),role:"button",tabindex:"-1","data-id":box.id},title=s("tit\
le",{text:box.full+(box.place?`
${box.place}`:"")});return s("g",props,title,...boxShape(box))}function pictureView({picture:picture2,nodes},point,name,open,changed){
let whole=drawingOf(picture2,nodes),pane=h("div",{cls:"dyn-fxpane dyn-picture"}),boxes=[],parts=new Map,arrows=[],now="",
partOf=id=>parts.get(id),mark=roving(pane,".dyn-fxnode",{arrows:"all",enter:part=>act(idOf(part))});function draw(){let inside=whole.
boxes.find(box=>open.has(box.id))?.inside,drawing=inside?drawingOf(inside,nodes):whole;boxes=drawing.boxes,parts=new Map(
boxes.map(box=>[box.id,boxNode(box)])),arrows=drawing.arrows.map(arrow=>[arrow,s("path",{cls:"dyn-arrow",d:rounded(arrow.
points,5)})]);let svg=s("svg",{width:drawing.width,height:drawing.height,role:"group","aria-label":name},arrows.map(([,path])=>path),
[...parts.values()]);pane.replaceChildren(svg),mark(partOf(parts.has(now)?now:boxes[0].id)),highlight(),changed()}function highlight(){
for(let[id,part]of parts)part.setAttribute("aria-pressed",String(id===now));for(let[arrow,path]of arrows)path.classList.
toggle("dyn-on",arrow.source===now||arrow.target===now)}function act(id){let box=boxes.find(other=>other.id===id);if(box){
if(now=id,point(box),!box.inside){highlight();return}open.add(id),draw(),partOf(boxes[0].id).focus({preventScroll:!0})}}
return pane.addEventListener("click",event=>{let hit=closest(event,".dyn-fxnode");hit&&act(idOf(hit))}),draw(),requestAnimationFrame(
()=>{pane.scrollLeft=boxes[0].x+(boxes[0].w-pane.clientWidth)/2}),{pane,showWhole:()=>{[now]=open,open.clear(),draw(),partOf(
now).focus()}}}function legend(nodes){let entries=[...new Set(nodes.map(node=>node.kind))].map(kind=>h("span",{},h("i",{
cls:`dyn-dot dyn-fx-${kind}`}),KINDS[kind]||kind)),timed=nodes.find(node=>node.time),what=timed?.time?.includes("off by")?
"error against float64":"eager time of each op",heat=timed&&h("span",{},h("i",{cls:"dyn-heatkey"}),what);return h("div",
{cls:"dyn-legend"},...entries,heat)}function fxView(body,pointAt,name,open){let{nodes,picture:picture2}=body,status=h("d\
iv",{cls:"dyn-fxstatus",role:"status"}),pane=h("div"),listed=!1,at=-1,point=(i,node)=>{at=i,status.textContent=node.full+
(node.place?`  ·  ${node.place}`:""),node.line&&pointAt(node.file,node.line)},flip=()=>{listed=!listed,show()},kindButton=button(
"dyn-btn","",flip),wholeButton=button("dyn-btn","All parts",()=>drawn.showWhole()),updateButtons=()=>{kindButton.textContent=
listed?"As a graph":"As a list",wholeButton.hidden=listed||!open.size},drawn=pictureView(body,box=>{point(box.at,box),isFold(
box)&&!box.inside&&flip()},name,open,updateButtons);function show(){pane.replaceChildren(listed?listView(nodes,i=>point(
i,nodes[i]),at):drawn.pane),updateButtons()}picture2.folds&&(status.textContent=`${nodes.length} nodes, folded into ${picture2.
folds.length}: click one to open it`),show();let tools=h("div",{cls:"dyn-fxtools"},wholeButton,kindButton);return h("div",
{cls:"dyn-fx"},h("div",{cls:"dyn-fxbar"},legend(nodes),tools),pane,status)}var KEYWORDS=new Set("False None True and as assert async await break class continue def del elif else except finally fo\
r from global if import in is lambda match nonlocal not or pass raise return try while with yield".split(" ")),TOKEN=new RegExp(
[/(#.*)/,/([rbfuRBFU]{0,2}(?:"""|'''))/,/([rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))/,/(\b\d[\w.]*)/,/(@[\w.]+)/,
/([^\W\d]\w*)/].map(part=>part.source).join("|"),"uy");function tokenize(line,open=""){let tokens=[],at=0,plain="",push=(text,kind)=>{
plain&&tokens.push([plain,""]),plain="",text&&tokens.push([text,kind])};if(open){let end=line.indexOf(open);if(end<0)return{
tokens:line?[[line,"str"]]:[],open};at=end+3,push(line.slice(0,at),"str")}let previous="";for(;at<line.length;){TOKEN.lastIndex=
at;let match=TOKEN.exec(line);if(!match){plain+=line[at++];continue}let[text,comment,triple,string,number,decorator,name]=match,
before=line.slice(0,at);if(at+=text.length,triple){let quotes=triple.slice(-3),end=line.indexOf(quotes,at);if(end<0)return push(
line.slice(before.length),"str"),{tokens,open:quotes};push(text+line.slice(at,end+3),"str"),at=end+3}else comment?push(text,
"com"):string?push(text,"str"):number?push(text,"num"):decorator&&!before.trim()?push(text,"dec"):name&&KEYWORDS.has(text)?
push(text,"key"):name&&(previous==="def"||previous==="class")?push(text,"def"):plain+=text;name&&(previous=text)}return push(
"",""),{tokens,open:""}}function withMarks(tokens,marks){let runs=[],column=0;for(let[text,kind]of tokens){let run="",mark=null;
for(let char of text){let here=marks.find(m=>column>=m.start&&column<m.end)||null;run&&here!==mark&&(runs.push({text:run,
kind,mark}),run=""),mark=here,run+=char,column+=1}run&&runs.push({text:run,kind,mark})}return runs}var FILES=6,NEAR=60,TONES=6,NOTES={skipped:"skipped",failed:"failed",empty:"empty",unfinished:"unfinished"};function paintCode(box,text,marks=[],open=""){
let painted=tokenize(text,open);for(let{text:text2,kind,mark}of withMarks(painted.tokens,marks)){let cls=[kind&&`dyn-t-${kind}`,
mark&&`dyn-mark dyn-mark-${mark.outcome}`].filter(Boolean).join(" ");box.append(cls?h("span",{cls,text:text2,"data-id":mark?.
id}):text2)}return painted.open}function badges(line){let box=h("span",{cls:"dyn-badge"}),put=(text,cls)=>box.append(h("\
b",{cls,text})),graphs=line.graphs||[],shown=line.marks||graphs.length>2?1:2;line.marks&&put("✂","dyn-b-break");for(let number of graphs.
slice(0,shown))put(String(number),`dyn-b-graph dyn-tone-${number%TONES}`);return graphs.length>2&&put(`+${graphs.length-
1}`,"dyn-b-more"),!line.marks&&!graphs.length&&line.state&&line.state!=="empty"&&put(line.state==="unfinished"?"…":"–",
"dyn-b-skip"),box}function lineClass(line,state){return state==="graph"?`dyn-l-graph dyn-tone-${(line.graphs||[])[0]%TONES}`:
state?`dyn-l-${state}`:""}function lineRow(line,previous,code){let state=line.marks?"break":line.state||"",first=!previous||
previous.state!==line.state||previous.id!==line.id,note=line.marks?line.reason:first?NOTES[state]:"",[region,setBy]=line.
region||[];return h("div",{cls:`dyn-ln ${lineClass(line,state)}`,...OPTION,title:line.reason,"data-line":line.line,"data\
-id":line.marks?line.marks[0].id:line.id},h("span",{cls:`dyn-no${region?` dyn-in-${region}`:""}${line.error?" dyn-off":""}`,
title:line.error?.text||setBy,style:line.error&&`--h:${line.error.heat}%`,text:line.line}),badges(line),h("div",{style:`\
--in:${line.text.search(/\S|$/)}`},code,line.error?.first&&h("span",{cls:"dyn-note dyn-failed",text:`begins here: ${line.
error.text}`}),note&&h("span",{cls:"dyn-note",text:note})))}function fileGroup(file,named,rows,unfolded){let group=h("di\
v",{role:"group","aria-label":file.label});named&&group.append(h("div",{cls:"dyn-file",title:file.file,text:file.label,role:"\
presentation"}));let{lines}=file,quotes="",folded=!1,previous=null;for(let at=0;at<lines.length;at++){let line=lines[at],
end=foldEnd(file,at,unfolded);if(line.gap&&([quotes,previous]=["",null]),line.gap&&!folded&&end===at&&group.append(h("di\
v",{cls:"dyn-gap",role:"presentation",text:`⋯ ${plural(line.gap,"line")}`})),folded=end>at,folded){let text=`⋯ ${plural(
end-at,"line")}`,props={cls:"dyn-ln dyn-quiet",...OPTION,"data-from":at,title:"show these lines",text};for(group.append(
h("div",props));at<end-1;)quotes=tokenize(lines[at++].text,lines[at].gap?"":quotes).open;quotes=tokenize(lines[at].text,
quotes).open,previous=null;continue}let code=h("code");quotes=paintCode(code,line.text,line.marks||[],quotes);let node=lineRow(
line,previous,code);group.append(node),rows.push({node,line,file:file.file}),previous=line}return group}function foldEnd({
lines,owner},at,{near,open}){let hidden=n=>owner!==void 0&&Math.abs(n-near)>NEAR&&!open.has(n),end=at;for(;end<lines.length&&
hidden(end)&&(end===at||!lines[end].gap);)end++;return end}function fileButton({file,label:label2,breaks=0,graphs=0,owner},show){
let counts=[breaks&&`${breaks} ✂`,graphs&&`${graphs} ▦`].filter(Boolean).join(" "),title=`${file}: ${plural(breaks,"\
break")}, lines in ${plural(graphs,"graph")}`,props={title,"aria-label":`${label2}: ${title}`,"aria-pressed":"false"};return button(
`dyn-chip dyn-of-${owner}`,"",show,props,h("b",{text:label2}),` ${counts}`)}function wayParts({file,line,names},sources,show){
let own=sources.find(source=>source.file===file),code=h("code");paintCode(code,(own?.lines.find(one=>one.line===line)?.text||
"").trim());let steps=names.flatMap((name,i)=>[i?" › ":"",h("span",{text:saidOnce(name,names[i-1])})]);return[h("div",
{},button("dyn-link",`${own?.label||file}:${line}`,show)," ",code),h("div",{cls:"dyn-path"},...steps)]}function sourceView(select){
let box=h("div",{cls:"dyn-src",role:"listbox","aria-label":"source lines"}),files=h("div",{cls:"dyn-files",role:"group",
"aria-label":"files"}),path=h("div",{cls:"dyn-way","aria-label":"the way from your code",role:"note"}),act=line=>{let from=line.
dataset.from;if(!from||!current)return select(idOf(line));unfold(current,Number(from)),rows.find(row2=>row2.line===current?.
lines[Number(from)])?.node?.focus({preventScroll:!0})},mark=roving(box,".dyn-ln",{enter:act});box.addEventListener("clic\
k",event=>{if(String(getSelection()))return;let line=closest(event,".dyn-ln"),marked=idOf(closest(event,".dyn-mark"));marked?
select(marked):line&&act(line)});let markSelected=exclusive("aria-selected"),markFile=exclusive("aria-pressed"),content=null,
current=null,unfolded=new Map,rows=[];function belongs({line,file},content2,id){if(line.id===id||(line.marks||[]).some(m=>m.
id===id))return!0;let detail=content2.details[id];return!detail||detail.kind==="break"?!1:detail.kind==="graph"?(line.graphs||
[]).includes(Number(detail.title.replace(/\D/g,""))):detail.line===line.line&&detail.file===file}let unfoldedOf=file=>unfolded.
get(file)||{near:0,open:new Set};function drawLines(){if(!content)return;let shown=current?[current]:content.sources;rows=
[],box.replaceChildren(...shown.map(file=>fileGroup(file,shown.length>1,rows,unfoldedOf(file)))),rows[0]&&mark(rows[0].node),
markFile(current?[files.children[content.sources.indexOf(current)]]:[])}function show(file){file!==current&&(current=file,
drawLines(),box.scrollTop=0)}function unfold(file,from){let{near,open}=unfoldedOf(file),end=Math.min(foldEnd(file,from,unfoldedOf(
file)),from+NEAR);for(let at=from;at<end;at++)open.add(at);unfolded.set(file,{near,open}),drawLines()}function showLine(file,line){
let at=file.lines.indexOf(line),{near,open}=unfoldedOf(file);Math.abs(at-near)>NEAR-20&&unfolded.set(file,{near:at,open});
let changed=file!==current||unfoldedOf(file).near!==near;if(current=file,changed&&drawLines(),foldEnd(file,at,unfoldedOf(
file))===at)return;let from=at;for(;from>0&&foldEnd(file,from-1,unfoldedOf(file))>at;)from--;unfold(file,from)}function point(file,line){
let at=content?.sources.find(one=>one.file===file),target=at?.lines.find(one=>one.line===line);current&&at&&target&&showLine(
at,target);let found=rows.find(row2=>row2.line.line===line&&row2.file===file);if(found){for(let row2 of rows)row2.node.classList.
toggle("dyn-point",row2===found);reveal(box,found.node,!0)}}return{node:box,head:[files,path],point,draw(model){content=
model,unfolded=new Map,current=model.sources[0]?.owner?model.sources[0]:null,files.hidden=!current||model.sources.length<
2,files.replaceChildren(...current?model.sources.map(file=>fileButton(file,()=>show(file))):[]),files.classList.remove("\
dyn-all");let more=model.sources.length-FILES;current&&more>1&&files.append(button("dyn-link",plural(more,"more file"),()=>files.
classList.add("dyn-all"))),drawLines()},highlight(content2,id){if(current){let order=[current,...content2.sources.filter(
file=>file!==current)],own=content2.details[id],found=order.flatMap(file=>file.lines.filter(line=>belongs({line,file:file.
file},content2,id)).map(line=>({file,line}))).sort((a,b)=>+(b.file.file===own?.file)-+(a.file.file===own?.file));found[0]&&
showLine(found[0].file,found[0].line)}let way=content2.details[id]?.way;path.replaceChildren(...way?wayParts(way,content2.
sources,()=>point(way.file,way.line)):[]);let nodes=rows.filter(row2=>belongs(row2,content2,id)).map(row2=>row2.node);return markSelected(
nodes),nodes.length&&mark(nodes[0]),()=>reveal(box,nodes[0],!0)}}}var MOST_PAINTED=4e4,MARKS={break:"✂",graph:"▦",skipped:"–",failed:"✗",empty:"∅",resume:"↳",autograd:"↶"},
SWITCHABLE=["break","function","skipped","failed","unfinished","statements"];function proseBody({text,todo,code}){return h(
"div",{cls:"dyn-prose"},text.map(t=>h("p",{},...withCode(t))),todo.length>0&&h("h3",{text:"What to do"}),todo.length>0&&
h("ul",{},...todo.map(t=>h("li",{},...withCode(t)))),code.map(t=>h("pre",{cls:"dyn-code dyn-wrap",text:t})))}var VERDICTS={
verified:"✓",conditional:"?",refused:"✗",untried:"–"};function fixRow({words,verdict,gain,assumption,condition,diff}){
let lines=diff.map(line=>h("span",{cls:line[0]==="+"?"dyn-added":line[0]==="-"?"dyn-removed":"",text:`${line}
`}));return h("div",{cls:`dyn-change dyn-change-${verdict}`},h("p",{},h("b",{"aria-hidden":"true",text:`${VERDICTS[verdict]}\
 `}),...withCode(words)),lines.length>0&&h("pre",{cls:"dyn-code dyn-diff",tabindex:"0"},...lines),gain&&h("p",{cls:"dyn-\
gain",text:gain}),condition&&h("p",{},h("b",{text:"Condition: "}),...withCode(condition)),assumption&&h("p",{},"Assumes:\
 ",...withCode(assumption)))}function fixBody({chosen,others,copies},ctx){let tried=others.map(fixRow),summary=h("summar\
y",{text:`${plural(others.length,"other change")} considered`});return h("div",{cls:"dyn-prose"},!chosen.length&&!others.
length&&h("p",{text:"No changes have been tried. The button runs the cell again, and tries them on copies of its calls."}),
h("div",{cls:"dyn-row"},...Object.entries(copies).map(([label2,text])=>copyButton(text,label2)),ctx.fixButton()),chosen.
map(fixRow),tried.length>0&&h("details",{open:!chosen.length},summary,...tried))}function codeBody({text,lang,start}){let pre=h(
"pre",{cls:lang==="prose"?"dyn-code dyn-wrap":"dyn-code",tabindex:"0"});if(lang!=="python"||text.length>MOST_PAINTED)return pre.
textContent=text,pre;let open="",lines=text.split(`
`);return lines.forEach((line,i)=>{let box=h("span",start?{"data-n":start+i,cls:"dyn-cl"}:{});open=paintCode(box,line,[],
open),pre.append(box,i+1<lines.length?`
`:"")}),pre}function stackBody(stack,ctx){let entries=stack.map(({place,file,line,function:name,source})=>{let link=button(
"dyn-link",place,()=>ctx.point(file,line));return h("li",{},link,` in ${name}`,source?h("code",{text:source}):null)});return h(
"ol",{cls:"dyn-stack"},...entries)}function listBody(rows,ctx){let cell=(text,cls="",link=null)=>h("td",{cls:`${cls}${text.
length>24?"":" dyn-short"}`},link||text),lines=rows.map(([name,value,words,id])=>h("tr",{},cell(name,"dyn-monot",id&&ctx.
has(id)?selectLink(name,id,ctx):null),cell(value,"dyn-monot"),cell(words,words.startsWith("Unsafe")?"dyn-unsafe":"")));return h(
"table",{cls:"dyn-table"},h("tbody",{},...lines))}function copyBody(body){return h("div",{},h("div",{cls:"dyn-row"},copyButton(
body.text,"Copy")),codeBody(body))}function runBody({graph,text,ran,code},ctx){let run=button("dyn-btn dyn-primary",ran?
"Run it again":"Run this graph",()=>ctx.request({kind:"run_graph",graph}));return h("div",{cls:"dyn-prose dyn-run"},text.
map(t=>h("p",{text:t})),h("div",{cls:"dyn-row"},ctx.canRun()&&code&&run,code&&h("code",{text:code}),code&&copyButton(code,
"Copy")))}function partBody(part,ctx,{title,code},open){let content=ctx.content;switch(part.kind){case"prose":return proseBody(
part.body);case"code":return copyBody(part.body);case"source":{let text=sourceText(content.sources,part.body);return codeBody(
{text,lang:"python",start:part.body.start})}case"stack":return stackBody(part.body,ctx);case"graph":return fxView(part.body,
ctx.point,`${title} ${code}`,open);case"run":return runBody(part.body,ctx);case"fix":return fixBody(part.body,ctx);default:
return listBody(part.body,ctx)}}function copyButton(text,label2){let node=button("dyn-btn",label2,async()=>{node.textContent=
await copyText(text)?"copied":"could not copy",setTimeout(()=>{node.textContent=label2},1500)});return node}function selectLink(text,id,ctx){
return button("dyn-link",text,()=>ctx.select(id))}function factList(facts,ctx){let entries=facts.map(([label2,value,id],i)=>{
let repeated=i>0&&facts[i-1][0]===label2,cls=label2.startsWith(" ")?"dyn-sub":null;return[h("dt",{text:repeated?"":label2.
trim(),cls}),h("dd",{},id&&ctx.has(id)?selectLink(value,id,ctx):value)]});return h("dl",{cls:"dyn-facts"},...entries)}function partsOf({
kind,parts},ctx){let[first,...others]=parts,has=key=>parts.some(part=>part.key===key);return has("fix")||!(kind==="break"||
has("recompile"))||!ctx.fixButton()?parts:[first,{key:"fix",name:"Fix",kind:"fix",body:{chosen:[],others:[],copies:{}}},
...others]}function detailView(ctx){let node=h("section",{cls:"dyn-detail","aria-label":"detail",tabindex:"-1"}),chosen=new Map,
opened=new Map;function tabs(detail,id,open){let parts=partsOf(detail,ctx);if(!parts.length)return[];let list=h("div",{cls:"\
dyn-tabs",role:"tablist","aria-label":"parts"}),panel=h("div",{cls:"dyn-panel",role:"tabpanel"}),mark=roving(list,".dyn-\
tab",{arrows:"horizontal",enter:tab=>tab.click()}),byKey=new Map,show2=part=>{for(let[key,tab]of byKey)tab.setAttribute(
"aria-selected",String(key===part.key)),key===part.key&&mark(tab);panel.setAttribute("aria-label",part.name),panel.replaceChildren(
partBody(part,ctx,detail,open))};for(let part of parts){let{key,name}=part,onclick=event=>{event.preventDefault(),chosen.
set(detail.kind,key),ctx.link(id,key),show2(part),tab.focus()},href=linkTo(id,key),tab=h("a",{cls:"dyn-tab",role:"tab",tabindex:"\
-1","data-key":key,href,text:name,onclick});byKey.set(key,tab),list.append(tab)}let wanted=chosen.get(detail.kind);return show2(
parts.find(part=>part.key===wanted)||parts[0]),[list,panel]}function switches({kind,target}){if(!ctx.canRun()||!target||
!SWITCHABLE.includes(kind))return null;let where=kind==="break"?"here":"in this function",box=h("div",{cls:"dyn-switches",
role:"group","aria-label":`error_on_graph_break ${where}`});for(let[set,word,effect]of[["allow","Allow","allow graph bre\
aks"],["error","Error","fail at a graph break"]]){let choose=()=>{ctx.pending.region(target,set),ctx.changed(),node.querySelector(
`.dyn-switches [data-set=${set}]`).focus()},props={"aria-pressed":String(ctx.pending.regions.get(target)===set),"data-se\
t":set,title:`${effect} ${where}, in the next run`};box.append(button("dyn-btn",`${word} ${where}`,choose,props))}return box}
function hint(content){return Object.keys(content.details).length?"Select a line of the source or a part of the split gr\
aph.":ctx.host.get("busy")?"Nothing has been compiled yet.":"Nothing was compiled."}function heading(detail){let{kind,title,
code,place,copy,links=[]}=detail,name=h("span",{cls:"dyn-dkind",text:`${MARKS[kind]||"▢"} ${title}`}),target={target:"\
_blank",rel:"noopener noreferrer"};return h("div",{cls:`dyn-dhead dyn-d-${kind}`},h("h2",{cls:"dyn-dtitle"},name,code?["\
 ",h("code",{text:code})]:null),h("div",{cls:"dyn-where"},h("span",{text:place}),copy?copyButton(copy,"Copy place"):null,
switches(detail),...links.map(([text,href])=>h("a",{cls:"dyn-out",href,...target,text:`${text} ↗`}))))}function show(content,id){
let detail=content.details[id];if(node.hidden=!1,!detail){node.replaceChildren(h("p",{cls:"dyn-hint",text:hint(content)}));
return}let open=opened.get(id)||new Set;opened.set(id,open);let main=h("div",{cls:"dyn-dmain"},...tabs(detail,id,open));
node.replaceChildren(heading(detail),h("div",{cls:"dyn-dbody"},main,factList(detail.facts,ctx)))}return{node,show,choose:(kind,part)=>chosen.
set(kind,part)}}function adviceView(ctx){let node=h("section",{cls:"dyn-do","aria-label":"what to do first"}),tryIt=button("dyn-btn","Tr\
y it",()=>ctx.request(ctx.pending.request({second_call:!0})),{title:"runs the cell again, then traces its calls with eac\
h of the compiler's hints"});function drawButton(){tryIt.hidden=!ctx.canRun()||!ctx.content?.advice?.hints,tryIt.disabled=
!!ctx.host.get("busy")}return{node,draw({advice}){if(node.hidden=!advice,!advice)return;let{first,id,more,copies}=advice;
node.replaceChildren(h("b",{text:"Do this first"}),id?button("dyn-first","",()=>ctx.select(id),{},...withCode(first)):h(
"span",{cls:"dyn-first"},...withCode(first)),tryIt,...Object.entries(copies).map(([label2,text])=>copyButton(text,label2)),
...more.map(sentence=>h("p",{cls:"dyn-left"},...withCode(sentence)))),drawButton()},drawButton,highlight:()=>()=>{}}}function checkView(ctx){let node=h("section",{cls:"dyn-check","aria-label":"what the check found"}),search2=button("dyn-\
btn","Where does it begin?",()=>ctx.request(ctx.pending.request({check:"where"})),{title:"runs the cell again, then sear\
ches the line, what makes it, and what helps"});function drawButton(){search2.hidden=!ctx.canRun()||!ctx.content?.check?.
searchable,search2.disabled=!!ctx.host.get("busy")}return{node,draw({check}){if(node.hidden=!check?.lines.length,!check)
return;let{agrees,lines,id,issue}=check;node.classList.toggle("dyn-differs",agrees===!1),node.replaceChildren(h("b",{text:"\
Check"}),search2,id?button("dyn-btn","Show the errors in the graph",()=>ctx.select(id)):"",issue?copyButton(issue,"Text \
for an issue"):"",...lines.map(line=>h("p",{cls:"dyn-left"},...withCode(line)))),drawButton()},drawButton,highlight:()=>()=>{}}}var MARKS2=[["dyn-b-graph dyn-tone-0","0","graph 0 captured this line; it has the same color in the split graph"],["dyn-\
b-break","✂","graph break: the compiler cannot trace this expression, so Python runs it"],["dyn-b-skip","–","a line \
of a skipped or failed frame: it runs eagerly"],["dyn-b-skip","…","a line of a compile without a recorded end"],["dyn-\
no dyn-in-allow","7","a region in which graph breaks are allowed"],["dyn-no dyn-in-error","7","a region in which graph b\
reaks are errors"],["dyn-again","↻","recompile: a guard failed, and the function was compiled again"],["","frame 0/1",
"the second compile (1) of the first function (0)"],["","runs eagerly","runs as without torch.compile"],["","resumes, ↳",
"the rest of a function after a graph break, compiled on its own"],["","skipped frame","it runs eagerly; functions that \
it calls may be compiled"],["","empty frame","nothing in it had to be compiled"],["","2 hits","the same graph break, see\
n from 2 frames"],["","2 of 8 versions","compiled versions in the cache of a function, and the recompile limit"],["","◆",
"your own code; other names are those of libraries"]];function row([cls,mark,meaning]){let badge=cls.startsWith("dyn-b-")&&
h("span",{cls:"dyn-badge"},h("b",{cls,text:mark}));return[h("dt",{},badge||h("span",{cls,text:mark})),h("dd",{text:meaning})]}
var marksView=()=>h("details",{cls:"dyn-marks"},h("summary",{text:"Legend",title:"what the marks and words mean"}),h("dl",
{cls:"dyn-facts"},...MARKS2.flatMap(row)));var SETTINGS=[["backend",["inductor","aot_eager","eager","cudagraphs"].map(name=>[name,name])],["fullgraph",null],["erro\
r_on_graph_break",null],["dynamic",[[null,"auto"],[!0,"true"],[!1,"false"]]],["device",[[null,"default"],["cpu","cpu"],[
"cuda","cuda"]]]],CONTROLS="button,select,input,summary",shortened=name=>name.length>90?name.slice(0,60)+"…"+name.slice(
-28):name;function headline({name,counts},level){let heading={role:"heading","aria-level":level,text:shortened(name),title:name},
words=counts.flatMap(([number,word],i)=>[i?" · ":"",h("span",{},number&&h("strong",{text:number}),number&&word?` ${word}`:
word)]);return[h("b",heading)," ",h("span",{cls:"dyn-counts"},...words)]}var settingWords=settings=>["backend","mode","d\
evice","fullgraph","error_on_graph_break"].filter(name=>settings[name]).map(name=>settings[name]===!0?name:String(settings[name]).
slice(0,60));function headerView(ctx){let{host,pending:pending2}=ctx,title=h("div",{cls:"dyn-title"}),chips=h("div",{cls:"\
dyn-chips"}),progress=h("div",{cls:"dyn-progress",role:"status"}),settings=foldable("dyn-settings"),notes=foldable("dyn-\
notes"),actions=h("div",{cls:"dyn-actions",role:"group","aria-label":"controls"}),status=h("div",{cls:"dyn-status",role:"\
status","aria-live":"polite"}),command=h("div",{cls:"dyn-command"}),changes=foldable("dyn-diff"),printed=foldable("dyn-p\
rinted"),toolbar=h("div",{cls:"dyn-toolbar"},actions,settings.node,notes.node,marksView()),head=h("div",{cls:"dyn-head"},
title,progress,chips),node=h("header",{cls:"dyn-top"},head,toolbar,command,status,changes.node,printed.node),timer=0,saving=!1,
given=name=>(host.get("settings")||{})[name]??null,value=name=>name in pending2.settings?pending2.settings[name]:given(name);
function choice(name,options){let now=value(name),changed=name in pending2.settings?" dyn-changed":"",change=to=>{pending2.
set(name,to,given(name)),ctx.changed()};if(!options){let unused=name==="error_on_graph_break"&&value("fullgraph")===!0,box=h(
"input",{type:"checkbox"});box.checked=now===!0,box.addEventListener("change",()=>change(box.checked||(given(name)===null?
null:!1)));let hint=unused&&"has no effect: fullgraph takes precedence";return h("label",{cls:`dyn-choice${changed}${unused?
" dyn-inactive":""}`,title:hint},box,name)}let list=h("select",{"aria-label":name,cls:`dyn-select${changed}`}),all=options.
some(([v])=>v===now)?options:[[now,String(now)],...options];for(let[v,text]of all)list.append(h("option",{text,selected:v===
now}));return list.addEventListener("change",()=>change(all[list.selectedIndex][0])),h("label",{cls:"dyn-choice"},name,list)}
function runControls(){let busy=!!(host.get("busy")&&!ctx.gone),{count}=pending2,text=count?`Run again (${plural(count,"\
change")})`:"Run again",run=button("dyn-btn dyn-primary",text,()=>ctx.request(pending2.request()),{disabled:busy}),fix=ctx.
fixButton();return fix&&(fix.disabled=busy),[run,fix,busy&&button("dyn-btn","Stop",()=>ctx.request({kind:"stop"}))]}function saveControls(){
let path=h("input",{cls:"dyn-search","aria-label":"path of the report",type:"text"});path.value="report.html";let save=()=>{
saving=!1,ctx.request({kind:"save",path:path.value}),drawControls()};path.addEventListener("keydown",event=>{event.key===
"Enter"&&save(),event.stopPropagation()});let ask=()=>{saving=!0,drawControls(),actions.querySelector("input")?.focus()};
return[saving&&path,button("dyn-btn","Save",()=>saving?save():ask(),{title:"save as .html, .json, .svg, .dot or .txt"})]}
function regionChips(){return[...pending2.regions].map(([target,set])=>{let undo=()=>{pending2.region(target,set),ctx.changed()};
return button("dyn-chip dyn-changed",`${target}: ${set} ×`,undo,{title:"undo this change"})})}function drawControls(){let at=[
...toolbar.querySelectorAll(CONTROLS)].findIndex(control=>control===document.activeElement),can=ctx.canRun(),known=host.
get("settings")||{},buttons=[can&&runControls(),host.live&&!ctx.gone&&saveControls()].flat().filter(part=>!!part),facts=(can||
!ctx.content?[]:settingWords(ctx.content.settings)).map(text=>h("span",{cls:"dyn-chip",text}));actions.replaceChildren(...buttons,
...regionChips(),...facts),actions.hidden=!actions.firstChild;let shown=can&&Object.keys(known).length>0,words=["Setting\
s",...settingWords(known).slice(0,1)].join(": ");settings.show(words,shown?SETTINGS.map(([name,options])=>choice(name,options)):
[]);let line=can?host.get("command"):"";command.replaceChildren(...line?[h("code",{text:line}),copyButton(line,"Copy")]:
[]);let all=toolbar.querySelectorAll(CONTROLS);at>=0&&(all[at]||all[0]).focus()}function drawProgress(){let now=host.get(
"now")||{};if(clearInterval(timer),progress.hidden=!("frames"in now)||ctx.gone,progress.hidden)return;let started=Date.now()-
1e3*(now.seconds||0),update=()=>{let compiling=[`compiling ${now.now||"…"}`,plural(now.frames,"frame"),plural(now.graphs,
"graph")],words=[...now.stage?[now.stage]:compiling,clock((Date.now()-started)/1e3)];progress.replaceChildren(h("i",{cls:"\
dyn-spin"}),words.join(" · "))};update(),timer=setInterval(()=>{host.get("busy")&&!ctx.gone?update():clearInterval(timer)},
500)}function drawNotes(){let{text="",kind=""}=ctx.local?{text:ctx.local,kind:"warning"}:host.get("status")||{},lines=[[
text,/^\w+$/.test(kind)?kind:"note"]];host.get("edited")&&lines.push(["the cell has been edited since this run","warning"]);
let said=lines.filter(([text2])=>text2);status.replaceChildren(...said.map(([text2,kind2])=>{let tabindex=text2.length>300?
"0":null;return h("div",{cls:`dyn-message dyn-message-${kind2}`,text:text2,tabindex})}));let remarks=ctx.content?ctx.content.
notes:[];notes.show(plural(remarks.length,"note"),remarks.map(text2=>h("p",{text:text2})));let diff=host.get("diff"),items=diff?
[...diff.lines,diff.times].map(text2=>h("li",{text:text2})):[];changes.show(`since the previous run: ${diff?.summary}`,items.
length?[h("ul",{},...items)]:[]);let parts=host.get("printed")||[];printed.show("output of the run",parts.map(({type,text:text2})=>h(
"pre",{cls:`dyn-o${type==="error"?" dyn-o-error":""}`,text:text2}))),printed.node.open=!0}function draw(content){title.replaceChildren(
...headline(content,host.live?2:1));let facts=content.overview?content.chips.filter(({kind})=>kind==="error"):content.chips;
chips.replaceChildren(...facts.map(({text,kind,id,full})=>{let cls=`dyn-chip dyn-c-${kind}`;return id?button(cls,text,()=>ctx.
select(id),{title:full}):h("span",{cls,text,title:full})})),drawControls(),drawProgress(),drawNotes()}return{node,draw,drawControls,
drawProgress,drawNotes,stop:()=>clearInterval(timer)}}function foldable(cls){let[summary,body]=[h("summary"),h("div")],node=h(
"details",{cls,hidden:!0},summary,body);return{node,show:(text,parts)=>{summary.textContent=text,body.replaceChildren(...parts),
node.hidden=!parts.length}}}function hostTheme({body,documentElement:root},prefersDark){let lab=body?.dataset.jpThemeLight;if(lab)return lab==="fals\
e"?"dark":"light";let names=[body?.className,root.className,body?.dataset.vscodeThemeKind].join(" ");if(/vscode-(light|high-contrast-light)/.
test(names))return"light";if(/vscode-(dark|high-contrast)/.test(names))return"dark";let theme=root.getAttribute("theme")||
root.dataset.theme||body?.dataset.theme||"";return/dark/.test(theme)?"dark":/light/.test(theme)?"light":/(^|\s)(dark|dark-theme)(\s|$)/.
test(names)?"dark":/(^|\s)(light|light-theme)(\s|$)/.test(names)?"light":prefersDark?"dark":"light"}var WATCHED=["class",
"theme","data-theme","data-jp-theme-light","data-vscode-theme-kind"];function followTheme(view){let system=matchMedia("(\
prefers-color-scheme: dark)"),apply=()=>{view.dataset.theme=hostTheme(document,system.matches)},observer=new MutationObserver(
apply),options={attributes:!0,attributeFilter:WATCHED};return observer.observe(document.documentElement,options),observer.
observe(document.body,options),system.addEventListener("change",apply),apply(),()=>{observer.disconnect(),system.removeEventListener(
"change",apply)}}function mountJob(root,{page,views},mountReport){page!==void 0&&root.replaceChildren(markup(page));let node=root.querySelector(
".dyn-ranks"),stopTheme=followTheme(node),panes=[...node.querySelectorAll(".dyn-rk-pair > div")],selects=[...node.querySelectorAll(
"select")],stops=panes.map(()=>()=>{});function show(side,group,frame=""){if(!selects[side])return;stops[side](),stops[side]=
()=>{},selects[side].value=String(group),panes[side].hidden=group<0;let view=views[group];view?stops[side]=mountReport(panes[side],
view,frame):panes[side].replaceChildren(h("p",{text:"The graphs of this group are not in this view."}))}function compare(card){
let{groups="0 -1",frames=" "}=card instanceof HTMLElement?card.dataset:{};groups.split(" ").forEach((group,side)=>show(side,
Number(group),frames.split(" ")[side]))}selects.forEach((select,side)=>select.addEventListener("change",()=>show(side,Number(
select.value)))),node.addEventListener("click",event=>{let card=closest(event,".dyn-rk-card > summary")?.parentElement;card&&
!card.hasAttribute("open")&&compare(card)});let search2=node.querySelector("input");return search2?.addEventListener("in\
put",()=>{let words=search2.value.trim().toLowerCase();for(let line of node.querySelectorAll("[data-rank]")){let found=/^\d+$/.
test(words)?line.dataset.rank===words:line.textContent?.toLowerCase().includes(words);line.hidden=!found}}),compare(node.
querySelector(".dyn-rk-card[open]")),()=>{stopTheme();for(let stop of stops)stop()}}var breakRow=b=>h("div",{cls:`dyn-item dyn-brow dyn-o-${b.outcome}${b.allowed?" dyn-allowed":""}`,...OPTION,"data-id":b.
id,title:b.type},h("span",{cls:"dyn-cut","aria-hidden":"true",text:"✂"}),placeParts(b.place),h("code",{text:b.code}),h(
"span",{cls:"dyn-pill",text:b.allowed?"allowed":b.outcome_text}),h("span",{cls:"dyn-type",text:b.type}),h("span",{cls:"d\
yn-hits",text:b.cost||(b.hits>1?`${b.hits} hits`:"")})),recompileRow=r=>h("div",{cls:`dyn-item${r.refused?" dyn-refused":
""}`,...OPTION,"data-id":r.id,title:r.full},h("span",{cls:"dyn-again","aria-hidden":"true",text:r.refused?"✗":"↻"}),
placeParts(r.place),h("code",{text:r.name}),h("span",{cls:"dyn-cause",text:r.refused?`recompile limit reached: ${r.cause}`:
r.cause}),h("span",{cls:"dyn-hits",text:r.facts}));function listView2(cls,label2,rowsOf,select,open){let box=h("div",{cls:`\
dyn-list ${cls}`,role:"listbox","aria-label":label2}),markSelected=exclusive("aria-selected"),mark=roving(box,".dyn-item",
{enter(row2){select(idOf(row2)),open()}});box.addEventListener("click",event=>select(idOf(closest(event,".dyn-item"))));
let rows=[];return{node:box,draw(content){rows=content.overview?[]:rowsOf(content),box.hidden=!rows.length,box.replaceChildren(
...rows),rows[0]&&mark(rows[0])},highlight(_,id){let row2=rows.find(r=>idOf(r)===id);return markSelected(row2?[row2]:[]),
row2&&mark(row2),()=>reveal(box,row2)}}}var listViews=(select,open)=>[listView2("dyn-breaks","graph breaks",({breaks})=>breaks.
map(breakRow),select,open),listView2("dyn-recompiles","recompiles",({recompiles})=>recompiles.map(recompileRow),select,open)];var PLACES=4,EAGER=3,OPEN=1;function placeButton(place,above,select){let{id,owner,function:name,code,times}=place;return button(
`dyn-spot dyn-of-${owner}`,"",()=>select(id),{"data-id":id,"aria-pressed":"false",title:`${place.place} in ${name}${code?
`: ${code}`:""}`},h("span",{cls:"dyn-line",style:`--ch:${place.place.length+saidOnce(name,above).length}`},placeParts(place.
place),nameParts(name,above)),times>1&&h("span",{cls:"dyn-hits",text:`${times}×`}),h("code",{text:code}))}var few=names=>names.
slice(0,EAGER).join(", ")+(names.length>EAGER?`, ${names.length-EAGER} more`:"");function causeNode(cause,number,open,select){
let{kind,count,cost,title,fix,eager,places}=cause,cut=places.length>PLACES+1,all=places.map((place,n)=>placeButton(place,
places[n-1]?.function,select)),more=button("dyn-link",plural(places.length-PLACES,"more place"),()=>{more.replaceWith(...all.
slice(PLACES))}),verb=kind==="break"?"runs eagerly: ":"at the recompile limit: ";return h("details",{cls:`dyn-shared dyn\
-shared-${kind}`,open,"data-id":cause.id},h("summary",{title},h("span",{cls:"dyn-rank",text:`${number}`}),h("b",{text:count}),
h("span",{cls:"dyn-what"},...withCode(title)),h("span",{cls:"dyn-hits",text:cost})),fix?h("p",{cls:"dyn-fix"},h("span",{
"aria-hidden":"true",text:"→ "}),...withCode(fix)):null,...cut?[...all.slice(0,PLACES),more]:all,eager.length?h("p",{cls:"\
dyn-eager",title:eager.join(", "),text:verb+few(eager)}):null)}function bar({part,eager,events},measured){let skipped=!measured&&
events.some(([kind])=>kind==="skipped"),what=measured?"time of a call":"captured operations",note=skipped?"; its own lin\
es run eagerly":eager?`, ${eager}% in eager code`:"",title=`${part}% of the row with the most ${what}${note}`;return h("\
span",{cls:`dyn-part${skipped?" dyn-part-eager":""}`,role:"gridcell",title,"aria-label":title},h("i",{style:`width:${part-
eager}%`}),eager?h("i",{cls:"dyn-part-eager",style:`width:${eager}%`}):null)}function callRow(row2,above,at,open,measured){
let{name,depth,place,owner,events}=row2,sign=open===null?"":open?"▾":"▸";return h("div",{cls:`dyn-call${place?"":" d\
yn-call-more"} dyn-of-${owner}`,role:"row","aria-level":depth+1,"aria-expanded":open===null?null:String(open),"aria-sele\
cted":"false",tabindex:"-1","data-at":at,title:`${name}${place?` at ${place}`:""}`},h("span",{cls:"dyn-call-name dyn-lin\
e",role:"gridcell",style:`--depth:${depth}`},h("span",{cls:"dyn-twist","aria-hidden":"true",text:sign}),place?[nameParts(
name,above?.name),placeParts(place,above?.place)]:h("b",{text:name})),h("span",{cls:"dyn-tail"},h("span",{cls:"dyn-event\
s",role:"gridcell"},...events.map(([kind,words])=>h("span",{cls:`dyn-event dyn-event-${kind}`,text:words}))),bar(row2,measured)))}
function overviewView(select,enter){let causes=h("div",{cls:"dyn-causes"}),grid=h("div",{cls:"dyn-calls",role:"treegrid",
"aria-label":"calls"}),causesTitle=h("h2"),left=h("section",{"aria-label":"causes"},h("div",{cls:"dyn-bar"},causesTitle),
causes),key=h("span",{cls:"dyn-part-key"}),right=h("section",{"aria-label":"calls"},h("div",{cls:"dyn-bar"},h("h2",{text:"\
Calls"}),key),grid),node=h("div",{cls:"dyn-over"},h("div",{cls:"dyn-over-cols"},left,right)),markPressed=exclusive("aria\
-pressed"),markSelected=exclusive("aria-selected"),content=null,shown=null,selected="",open=new Set,stop=0,rows=new Map,
hasBelow=at=>!!(shown&&shown.calls[at+1]&&shown.calls[at+1].depth>shown.calls[at].depth);function drawCalls(){if(!shown)
return;let{calls,measured}=shown,at=inSight(calls,open),had=grid.contains(document.activeElement);grid.style.setProperty(
"--deepest",String(Math.max(1,...at.map(n=>calls[n].depth)))),rows=new Map(at.map((n,i)=>[n,callRow(calls[n],calls[at[i-
1]],n,hasBelow(n)?open.has(n):null,measured)])),rows.has(stop)||(stop=at[0]??0),grid.replaceChildren(...rows.values()),rows.
get(stop)?.setAttribute("tabindex","0"),had&&rows.get(stop)?.focus({preventScroll:!0})}function toggle(at,to){to?open.add(
at):open.delete(at),drawCalls(),highlight(selected)}function go(at){rows.get(stop)?.setAttribute("tabindex","-1"),stop=at;
let row2=rows.get(at);row2?.setAttribute("tabindex","0"),row2?.focus({preventScroll:!0}),reveal(grid,row2)}function draw(model){
let fresh=model!==content;if(content=model,shown=model.overview,node.hidden=!shown,!shown)return;let{calls,measured}=shown;
fresh&&(open=new Set(calls.map((_,at)=>at).filter(at=>hasBelow(at)&&!calls[at].folded)));let places=shown.causes.flatMap(
cause=>cause.places),owners=new Set([...places,...calls].map(({owner})=>owner));node.parentElement?.classList.toggle("dy\
n-mixed",owners.size>1&&owners.has("own"));let named={own:"your code",model:shown.library,other:"other libraries"},found=new Set(
places.map(({owner})=>owner)),whose=Object.entries(named).flatMap(([owner,name])=>found.has(owner)?[name]:[]),where=whose.
length?` · ${whose.length>1?"":"all "}in ${whose.join(", ")}`:"";causesTitle.textContent=`Causes · ${shown.causes.length}${where}`,
causes.replaceChildren(...shown.causes.map((cause,n)=>causeNode(cause,n+1,n<OPEN,select))),shown.causes.length||causes.replaceChildren(
h("p",{cls:"dyn-eager",text:"none"})),key.textContent=measured?"bar: time of a call, the longest full":"bar: share of th\
e captured operations",drawCalls()}function highlight(id){if(selected=id,!shown)return()=>{};let{calls}=shown,at=calls.findIndex(
row3=>row3.ids.includes(id)&&!(row3.folded&&row3.ids.length>40));for(let n=at,depth=calls[at]?.depth;n>=0&&depth>0;n--)calls[n].
depth>=depth||(depth=calls[n].depth,open.has(n)||(open.add(n),rows.delete(at)));at>=0&&!rows.has(at)&&drawCalls();let row2=rows.
get(at);markSelected(row2?[row2]:[]),row2&&stop!==at&&!grid.contains(document.activeElement)&&(rows.get(stop)?.setAttribute(
"tabindex","-1"),row2.setAttribute("tabindex","0"),stop=at);let chosen=shown.causes.flatMap(cause=>cause.places).filter(
place=>place.ids.includes(id)),ids=new Set(chosen.map(place=>place.id)),pressed=[...causes.querySelectorAll(".dyn-spot")].
filter(place=>ids.has(place.dataset.id||""));markPressed(pressed);let show=again=>{reveal(grid,row2,!0);let top=grid.getBoundingClientRect().
top,cut=[...grid.children].find(other=>other.getBoundingClientRect().bottom>top+1);row2&&cut&&(grid.scrollTop+=Math.min(
0,cut.getBoundingClientRect().top-top)),again&&requestAnimationFrame(()=>show(again-1))};return()=>show(2)}return grid.addEventListener(
"click",event=>{let row2=closest(event,".dyn-call");if(!shown||!row2)return;let at=Number(row2.dataset.at);go(at),closest(
event,".dyn-twist")||!shown.calls[at].place?hasBelow(at)&&toggle(at,!open.has(at)):select(shown.calls[at].id)}),grid.addEventListener(
"keydown",event=>{let row2=closest(event,".dyn-call");if(!shown||!row2||event.altKey||event.ctrlKey||event.metaKey)return;
let{calls}=shown,at=Number(row2.dataset.at),all=[...rows.keys()],place=all.indexOf(at),moves={ArrowDown:all[place+1],ArrowUp:all[place-
1],Home:all[0],End:all[all.length-1]};if(event.key in moves)go(moves[event.key]??at);else if(event.key==="ArrowRight"&&hasBelow(
at))open.has(at)?go(all[place+1]):toggle(at,!0);else if(event.key==="ArrowLeft")open.has(at)&&hasBelow(at)?toggle(at,!1):
go(all.slice(0,place).findLast(n=>calls[n].depth<calls[at].depth)??at);else if(event.key==="Enter"||event.key===" ")select(
calls[at].id),event.key==="Enter"&&enter();else if(event.key!=="ArrowRight")return;handled(event)}),{node,draw,highlight:(_,id)=>highlight(
id)}}var AFTER=3,MOST=14,NEIGHBOURS=5,COLUMN_GAP=50,ROW_GAP=46,MARGIN=14,TURN=20,MORE={w:172,h:30};function framesOf(picture2){
let frames=new Map,frameOf=shape=>({id:shape.id,shape,boxes:[],into:[],out:[]}),stand=picture2.shapes.filter(({group})=>!group);
for(let shape of stand)frames.set(shape.id,frameOf(shape));let owner=new Map;for(let shape of picture2.shapes){let frame=frames.
get(shape.group||shape.id);shape.group&&frame.boxes.push(shape);for(let id of[shape.id,...shape.contents])owner.set(id,frame)}
for(let arrow of picture2.arrows){let[from,to]=[owner.get(arrow.source),owner.get(arrow.target)];!from||!to||from===to||
(from.out.push({arrow,from,to}),to.into.push({arrow,from,to}))}return{frames,owner,svg:picture2.svg}}var leadsDown=arrow=>arrow.
kind==="continues",entry=frame=>frame.into[0];function following(focus,wide){let kept=new Set([focus]),last=[focus];for(let n=0;n<
AFTER;n++){let next=[];for(let frame of last){let all=frame.out.filter(({to})=>entry(to)?.from===frame&&!kept.has(to)).filter(
({arrow})=>!n||leadsDown(arrow)).map(({to})=>to),room=wide.has(frame.id)?all.length:Math.min(NEIGHBOURS,MOST-kept.size);
for(let to of all.slice(0,Math.max(0,room)))kept.add(to),next.push(to)}last=next}return kept}function moreBox(id,of,title){
let text=title.length>20?`${title.slice(0,19)}…`:title;return{node:s("g",{cls:"dyn-node dyn-k-more"},s("title",{text:title}),
s("rect",{cls:"dyn-main",width:MORE.w,height:MORE.h,rx:5}),s("text",{cls:"dyn-strong",x:12,y:MORE.h/2+4,text})),id,kind:"\
more",group:"",contents:[of],x:0,y:0,...MORE}}var nameOf=shape=>shape.node.querySelector(".dyn-name, .dyn-strong")?.textContent||
"";function focused(whole,id,wide){let focus=whole.owner.get(id)||whole.frames.values().next().value;return focus?placed(
focus,following(focus,wide),whole.svg):null}function placed(focus,kept,whole){let arrows=[],labels=[],at=new Map,floors=[],
before=entry(focus),column=Math.max(...[...kept].map(({shape})=>shape.w))+COLUMN_GAP,left=col=>MARGIN+(before&&col?MORE.
w+COLUMN_GAP+(col-1)*column:col*column),right=0,copy=(shape,x,y)=>{let node=shape.node.cloneNode(!0);node.setAttribute("\
transform",`translate(${x} ${y})`),node.dataset.id=shape.id;let moved={...shape,node,x,y};return at.set(shape.id,moved),
moved},put=(shape,col,y)=>{let top=Math.max(y,floors[col]??MARGIN);return floors[col]=top+shape.h+ROW_GAP,copy(shape,left(
col),top)},join=arrow=>{let[from,to]=[at.get(arrow.source),at.get(arrow.target)];if(!from||!to)return;let points=route(from,
to,at.get(to.group)||to),path=arrow.path.cloneNode(!0);if(path.setAttribute("d",rounded(points,7)),Object.assign(path.dataset,
{s:arrow.source,t:arrow.target}),arrows.push({...arrow,path}),!arrow.label)return;let[[ax,ay],[bx,by]]=points.slice(-2),
x=leadsDown(arrow)?bx+8:(ax+bx)/2-3*arrow.label.length-2;labels.push(s("text",{cls:"dyn-label",x,y:leadsDown(arrow)?to.y-
9:Math.min(ay,by)-6,text:arrow.label})),right=Math.max(right,x+6.5*arrow.label.length)},plain=(source,target)=>{let path=whole.
querySelector(".dyn-arrow")?.cloneNode();path.setAttribute("class","dyn-arrow"),join({path,source,target,kind:"",label:""})},
standIn=(frame,id,title,col,y)=>{put(moreBox(id,frame.id,title),col,y),plain(frame.id,id)},place=(frame,col,y)=>{let{shape}=frame,
{x,y:top}=put(shape,col,y);for(let box of frame.boxes)copy(box,box.x+x-shape.x,box.y+top-shape.y);let follows=frame.out.
filter(({to})=>entry(to)?.from===frame),mine=follows.filter(({to})=>kept.has(to)&&!at.has(to.id)),below=top+shape.h+ROW_GAP;
for(let{arrow,to}of mine.filter(({arrow:arrow2})=>!leadsDown(arrow2)))place(to,col+1,top),join(arrow);let hidden=follows.
filter(({to})=>!kept.has(to)),calls=hidden.filter(({arrow})=>!leadsDown(arrow)).length,words=plural(calls,"more call"),beside=calls&&
frame===focus;beside&&standIn(frame,`more-calls-${frame.id}`,words,col+1,top+TURN-MORE.h/2);for(let{arrow,to}of mine.filter(
({arrow:arrow2})=>leadsDown(arrow2)))place(to,col,below),join(arrow);let rest=[!beside&&calls&&words,hidden.length>calls&&
"continues …"].filter(Boolean).join(", ");rest&&standIn(frame,`more-after-${frame.id}`,rest,col,below)};if(before){let title=`${leadsDown(
before.arrow)?"after":"from"} ${nameOf(before.from.shape)}`,box=put(moreBox(`more-before-${focus.id}`,before.from.id,title),
0,MARGIN+TURN-MORE.h/2);place(focus,1,MARGIN),plain(box.id,focus.id)}else place(focus,0,MARGIN);let shapes=[...at.values()],
width=Math.max(right,...shapes.map(({x,w})=>x+w))+MARGIN,height=Math.max(...shapes.map(({y,h:h2})=>y+h2))+MARGIN,inner=({
group,kind})=>!!group||kind==="more"||kind==="break";return{svg:s("svg",{cls:"dyn-picture",viewBox:`0 0 ${width} ${height}`},
whole.querySelector("defs")?.cloneNode(!0),shapes.filter(shape=>!inner(shape)).map(({node})=>node),arrows.map(({path})=>path),
shapes.filter(inner).map(({node})=>node),labels),shapes,arrows,width,height}}function route(from,to,outer){let x=from.x+
from.w/2,bottom=from.y+from.h,end=to.y+Math.min(TURN,to.h/2),beside=to.x>=from.x+from.w;if(!beside&&to.y-bottom<2*ROW_GAP)
return[[x,bottom],[x,to.y]];let start=beside?from.y+Math.min(TURN,from.h/2):bottom-6,side=beside?outer.x-COLUMN_GAP/2-6:
outer.x-12,out=beside?from.x+from.w:from.x;return Math.abs(start-end)<1?[[out,end],[to.x,end]]:[[out,start],[side,start],
[side,end],[to.x,end]]}var CLICK=5,LEGEND=[["graph","graph"],["break","graph break"],["allowed","allowed break"],["compiled","frame"],["recompi\
le","recompiled"],["skipped","skipped frame"],["failed","failed frame"],["cached","cached frame"],["unfinished","unfinis\
hed frame"],["empty","empty frame"],["allow","region: breaks allowed"],["error","region: breaks are errors"]],PRESSABLE={
role:"button","aria-pressed":"false",tabindex:"-1"},serial=0;function parsed(text){serial++;let own=text.replace(/(id="|url\(#)dyn-/g,
`$1dyn-${serial}-`);return picture(markup(own).firstElementChild)}function picture(svg){let shapes=[...svg.querySelectorAll(
".dyn-node")].map(node=>{let{id="",kind="",group="",contents="",box=""}=node.dataset,[x,y,w,h2]=box.split(" ").map(Number);
return{node,id,kind,group,contents:contents?contents.split(" "):[],x,y,w,h:h2}}),arrows=[...svg.querySelectorAll(".dyn-a\
rrow")].map(path=>{let{s:source="",t:target="",kind="",label:label2=""}=path.dataset;return{path,source,target,kind,label:label2}}),
[,,width,height]=String(svg.getAttribute("viewBox")).split(" ").map(Number);return{svg,shapes,arrows,width,height}}function keyOf(kind){
let size={x:1,y:1,width:18,height:11,rx:kind==="break"||kind==="allowed"?5.5:3},shape=s("rect",{cls:"dyn-main dyn-frame",
...size}),behind=kind==="recompile"&&s("rect",{cls:"dyn-frame",...size,x:4,y:-2}),cls=`dyn-k-${kind==="allowed"?"break":
kind} dyn-is-${kind} dyn-r-${kind} ${kind==="graph"&&"dyn-g0"}`;return s("svg",{cls:"dyn-picture",width:20,height:13,"ar\
ia-hidden":"true"},s("g",{cls},behind,shape))}function legendOf(svg){return LEGEND.filter(([kind])=>svg.querySelector(`.\
dyn-k-${kind}, .dyn-is-${kind}, .dyn-r-${kind}`)).map(([kind,text])=>h("span",{},keyOf(kind),text))}function draggable(pane){
let drag=null;return pane.addEventListener("pointerdown",({button:button2,pointerType,clientX:x,clientY:y})=>{button2!==
0||pointerType!=="mouse"||(drag={x,y,left:pane.scrollLeft,top:pane.scrollTop,far:!1})}),pane.addEventListener("pointermo\
ve",event=>{if(!drag||!(event.buttons&1))return;let dx=event.clientX-drag.x,dy=event.clientY-drag.y;drag.far=drag.far||Math.
hypot(dx,dy)>CLICK,drag.far&&([pane.scrollLeft,pane.scrollTop]=[drag.left-dx,drag.top-dy])}),()=>{let far=!!drag?.far;return drag=
null,far}}function splitView(select,enter){let icon=(text,name,act)=>button("dyn-btn dyn-icon",text,act,{"aria-label":name,
title:name}),pane=h("div",{cls:"dyn-pane",tabindex:"-1"}),field=h("input",{cls:"dyn-search",type:"search",placeholder:"S\
earch name or line","aria-label":"search the split graph by name or line"}),found=h("span",{cls:"dyn-found",role:"status"}),
wholeButton=button("dyn-btn","Whole graph",()=>showAll(!showWhole)),tools=h("div",{cls:"dyn-tools"},field,found,wholeButton,
icon("−","zoom out",()=>zoom(scale/1.25)),icon("+","zoom in",()=>zoom(scale*1.25)),icon("⤢","fit",()=>fit(0,1))),legend2=h(
"div",{cls:"dyn-legend","aria-label":"legend",role:"note"}),bar2=h("div",{cls:"dyn-bar"},h("h2",{text:"Split graph"}),tools),
node=h("section",{cls:"dyn-split","aria-label":"split graph"},bar2,pane,legend2),markPressed=exclusive("aria-pressed"),wasDragged=draggable(
pane),content=null,selected="",shown=null,nodes=new Map,stop,ids=[],scale=1,zoomed=!1,isPlaced=!1,whole=null,frames=null,
wide=new Set,showWhole=!1;function zoom(to){scale=Math.min(3,Math.max(.2,to)),zoomed=!0,resize()}function resize(){shown?.
svg.setAttribute("width",String(Math.round(shown.width*scale))),shown?.svg.setAttribute("height",String(Math.round(shown.
height*scale)))}function fit(least=.6,otherwise=.8){let room=pane.clientWidth-2;if(!shown||room<50)return;let all=Math.min(
1,room/shown.width);scale=all<(frames?.5:least)&&!(frames&&showWhole)?otherwise:all,resize()}function showAll(all){showWhole=
all,zoomed=!1,content&&draw(content),highlight(selected)()}function draw(model){content!==model&&(whole=model.split.large?
parsed(model.split.svg):null,frames=whole&&framesOf(whole),wide=new Set),content=model;let{split}=model;if(!split.svg)return;
frames&&whole?shown=!showWhole&&focused(frames,selected||model.first,wide)||whole:shown=parsed(split.svg);let{svg}=shown;
svg.setAttribute("role","group");let description=`split graph of ${model.name.slice(0,200)}; use the arrow keys to follo\
w the arrows`;svg.setAttribute("aria-label",description),markPressed([]),nodes=new Map(shown.shapes.map(({id,node:node2})=>[
id,fill(node2,PRESSABLE)])),stop=void 0,pane.replaceChildren(svg),zoomed||!isPlaced?resize():fit(),svg.hasAttribute("wid\
th")||resize(),wholeButton.hidden=!frames,wholeButton.setAttribute("aria-pressed",String(showWhole)),legend2.replaceChildren(
...legendOf(svg)),tabStop(selected),find()}function shownAs(id){return nodes.has(id)?id:shown?.shapes.find(shape=>shape.
contents.includes(id))?.id||id}function isAround(id){let frame=frames?.owner.get(id);return frame?nodes.has(frame.id)&&frame.
out.every(({to})=>nodes.has(to.id)):!0}function tabStop(id){return stop&&stop.setAttribute("tabindex","-1"),stop=nodes.get(
id)||[...nodes.values()][0],stop&&stop.setAttribute("tabindex","0"),stop}function highlight(chosen){let moved=selected!==
chosen;if(selected=chosen,!shown)return()=>{};frames&&!showWhole&&moved&&!isAround(chosen)&&content&&draw(content);let id=shownAs(
chosen),node2=nodes.get(id);markPressed(node2?[node2]:[]);for(let{path,source,target}of shown.arrows)path.classList.toggle(
"dyn-on",source===id||target===id);return tabStop(id),()=>{for(let part of[nodes.get(node2?.dataset.group||""),node2])part&&
reveal(pane,part.querySelector(".dyn-main"))}}function find(){ids=content?search(content,field.value):[];let searching=!!field.
value.trim(),matching=new Set(ids.map(shownAs));for(let[id,n]of nodes)n.classList.toggle("dyn-dim",searching&&!matching.
has(id));let hidden=ids.filter(id=>!nodes.has(id)).length,count=ids.length?`${ids.length} found${hidden?`, ${hidden} els\
ewhere`:""}`:"nothing found";found.textContent=searching?count:""}field.addEventListener("input",find),field.addEventListener(
"keydown",event=>{if(event.key==="Enter"&&ids.length)select(ids[(ids.indexOf(selected)+1)%ids.length]);else if(event.key===
"Escape")field.value="",find();else return;handled(event)}),pane.addEventListener("click",event=>{let dragged=wasDragged(),
hit=closest(event,".dyn-node");if(!hit||dragged)return;let id=idOf(hit);widen(id)||(select(id),(nodes.get(id)||hit).focus(
{preventScroll:!0}))});let onWheel=event=>{!event.ctrlKey&&!event.metaKey||(event.preventDefault(),zoom(scale*(event.deltaY<
0?1.12:.89)))};pane.addEventListener("wheel",onWheel,{passive:!1}),pane.addEventListener("keydown",event=>{let{key}=event,
at=closest(event,".dyn-node");if(key==="+"||key==="-")zoom(key==="+"?scale*1.25:scale/1.25);else{if(!at||event.ctrlKey||
event.metaKey||event.altKey)return;if(key.startsWith("Arrow"))walk(idOf(at),key);else if(key==="Enter"||key===" ")choose(
idOf(at),key==="Enter");else return}handled(event)});function walk(id,key){let next=shown&&tabStop(step(shown,id,key));next&&
(next.focus({preventScroll:!0}),reveal(pane,next.querySelector(".dyn-main")))}function widen(id){let box=shown?.shapes.find(
shape=>shape.id===id&&shape.kind==="more"),[of]=box?.contents||[];return!content||!of?!1:(wide.add(of),frames?.owner.get(
selected)?.id===of?draw(content):select(of),highlight(selected)(),tabStop(of)?.focus({preventScroll:!0}),!0)}function choose(id,further){
widen(id)||(select(id),further&&enter())}let observer=new ResizeObserver(()=>{isPlaced=!0,!(zoomed||!content)&&(fit(),highlight(
selected)())});return observer.observe(pane),{node,draw,highlight:(_,id)=>highlight(id),stop:()=>observer.disconnect()}}var ZOOM=4,MOST_ZOOM=256,NARROW=3,TONES2=["dynamo","lowering","aot","passes","codegen","compiler"],kindClass=(kind,tone=TONES2.
indexOf(kind))=>`dyn-k-${kind}${tone<0?"":` dyn-tone-${tone}`}`,percent=part=>`${part>=.1||part===0?Math.round(part*100):
(part*100).toFixed(1)}%`;function merged(segments,least){let pieces=[],run=[],close=()=>{run.length<2?pieces.push(...run):
pieces.push(joined(run)),run=[]};for(let segment of segments){let before=run[run.length-1],apart=before&&(before.lane!==
segment.lane||segment.x-before.x-before.w>least);(segment.w>=least||apart)&&close(),segment.w<least?run.push(segment):pieces.
push(segment)}return close(),pieces}function joined(run){let first=run[0],last=run[run.length-1],w=last.x+last.w-first.x,
label2=`${run.length} short stretches`;return{kind:"short",lane:first.lane,x:first.x,w,label:label2,full:`${label2}, ${percent(
w)} of the call: zoom in to see each`,ids:run.map(s2=>s2.id),id:(run.find(s2=>s2.id)||first).id}}function pieceNode(piece){
return h("div",{cls:`dyn-seg ${kindClass(piece.kind,piece.tone)}`,...OPTION,"data-id":piece.id,title:piece.full,"aria-la\
bel":piece.full,style:`left:${piece.x*100}%;width:${piece.w*100}%`},h("span",{text:piece.kind==="unaccounted"?"":piece.label}))}
var swatch=kind=>h("i",{cls:`dyn-swatch ${kindClass(kind)}`,"aria-hidden":"true"}),shareItems=shares=>shares.map(({name,
kind,part,full})=>h("li",{title:full},swatch(kind),`${name} `,h("b",{text:percent(part)})));function inputsTable(time,select){
let rows=time.inputs.map(({arguments:given,outcome,words,id},i)=>h("tr",{cls:`dyn-in-${outcome}`},h("td",{text:i+1}),h("\
td",{},h("code",{text:given})),h("td",{},id?button("dyn-link",words,()=>select(id)):words)));return[h("summary",{text:time.
inputs_summary}),h("table",{cls:"dyn-table"},...rows)]}function timeView(select,open){let pane=h("div",{cls:"dyn-lanes"}),
zoomer=(text,name,factor)=>button("dyn-btn",text,()=>zoomBy(factor),{title:name,"aria-label":name}),shares=h("ul",{cls:"\
dyn-shares","aria-label":"where the time goes"}),inputs=h("details",{cls:"dyn-inputs",open:!0}),title=h("h2"),summary=h(
"div",{cls:"dyn-verdict"}),bar2=h("div",{cls:"dyn-bar"},title,zoomer("−","zoom out of the call",1/ZOOM),zoomer("+","zo\
om in on the call",ZOOM),zoomer("fit","show the whole call",0)),node=h("section",{cls:"dyn-time","aria-label":"run time"},
bar2,summary,shares,pane,inputs),markSelected=exclusive("aria-selected"),mark=roving(pane,".dyn-seg",{arrows:"horizontal",
enter(piece){select(idOf(piece)),open()}});pane.addEventListener("click",event=>select(idOf(closest(event,".dyn-seg"))));
let zoom=1,selected="",time=null,holds=new Map;function zoomBy(factor){if(!time)return;let middle2=(pane.scrollLeft+pane.
clientWidth/2)/zoom;zoom=factor?Math.min(MOST_ZOOM,Math.max(1,zoom*factor)):1,drawLanes(time),highlight(),pane.scrollLeft=
middle2*zoom-pane.clientWidth/2}function drawLanes(line){let width=zoom*(pane.clientWidth||1e3),pieces=merged(line.segments,
NARROW/width);holds.clear();let lanes=line.lanes.map((name,number)=>{let lane=h("div",{cls:"dyn-lane",role:"listbox","ar\
ia-orientation":"horizontal","aria-label":`${name}, ${line.total}`,"data-name":line.lanes.length>1&&name||null,style:`wi\
dth:${zoom*100}%`});for(let piece of pieces.filter(p=>p.lane===number)){let node2=pieceNode(piece);holds.set(node2,piece.
ids||[piece.id]),lane.append(node2)}return lane});pane.replaceChildren(...lanes);let first=pane.querySelector(".dyn-seg");
first&&mark(first)}function highlight(){let nodes=selected?[...holds].filter(([,ids])=>ids.includes(selected)).map(([piece])=>piece):
[];return markSelected(nodes),()=>{zoom>1&&reveal(pane,nodes[0])}}return{node,draw(content){time=content.time,node.hidden=
!time,time&&(title.textContent=`Run time · ${time.call}`,title.title=time.devices,summary.replaceChildren(...time.verdict?
[h("p",{text:time.verdict})]:[]),shares.replaceChildren(h("li",{text:time.profiled}),...shareItems(time.shares)),inputs.
hidden=!time.inputs.length,inputs.replaceChildren(...inputsTable(time,select)),drawLanes(time))},highlight(_,id){return selected=
id,highlight()}}}var HEADS=["alone","with inner","","phase","part of the compiler","most of it in"],phaseRow=({name,kind,
what,own,total,count,where,id},select)=>h("tr",{},[own,total,count>1?`${count}×`:""].map(text=>h("td",{cls:"dyn-number",
text})),h("td",{},h("code",{text:name})),h("td",{},swatch(kind),what),h("td",{},id?button("dyn-link",where,()=>select(id)):
where));function compileTimeView(select){let folded=h("details",{cls:"dyn-compile-time"}),node=h("section",{cls:"dyn-tim\
e dyn-compile","aria-label":"compile time"},folded),parts=({title,shares,rows,words})=>[h("summary",{},h("h2",{text:title})),
h("ul",{cls:"dyn-shares","aria-label":"where the compile time goes"},...shareItems(shares)),h("table",{cls:"dyn-table"},
h("tr",{},HEADS.map(text=>h("th",{text,scope:"col"}))),rows.map(row2=>phaseRow(row2,select))),h("div",{cls:"dyn-verdict"},
words.map(text=>h("p",{text})))];return{node,draw({compile_time:time}){node.hidden=!time,time&&folded.replaceChildren(...parts(
time))},highlight:()=>()=>{}}}var PATIENCE=3e3,OUTPUT=":is(.jp-OutputArea-child, .output_container, .cell_output > .output, .nboutput)",GONE="the kern\
el is gone: run the cell again",BUSY="no answer: the kernel is busy or gone";function mount(root,host){let selected="",shown={
id:"",content:null},ctx={host,pending:pending(),content:null,local:"",gone:root.classList.contains("jupyter-widgets-disc\
onnected"),select,point:(file,line)=>sourceLines.point(file,line),has:id=>!!ctx.content?.details[id],canRun:()=>!!host.get(
"can_run_again")&&!ctx.gone,fixButton(){return!ctx.canRun()||!ctx.content?.fixable?null:button("dyn-btn","Try all fixes",
()=>request(ctx.pending.request({fix:!0})),{title:"runs the cell again, then tries changes for each break and recompile"})},
changed(){header.drawControls(),redrawDetail()},link:(id,part)=>host.link(linkTo(id,part)),request},open=()=>detail.node.
focus({preventScroll:!1}),header=headerView(ctx),advice=adviceView(ctx),check=checkView(ctx),overview=overviewView(select,
open),lists=listViews(select,open),time=timeView(select,open),compileTime=compileTimeView(select),sourceLines=sourceView(
select),split=splitView(select,open),detail=detailView(ctx),parts=[advice,check,overview,...lists,time,compileTime,sourceLines,
split],sourceTitle=h("h2",{text:"Source"}),sourceBar=h("div",{cls:"dyn-bar"},sourceTitle),source=h("section",{cls:"dyn-s\
ource","aria-label":"source"},sourceBar,...sourceLines.head,sourceLines.node),middle2=h("div",{cls:"dyn-mid"},source,split.
node),view=h("div",{cls:"dyn"},header.node,advice.node,check.node,overview.node,...lists.map(list=>list.node),time.node,
compileTime.node,middle2,detail.node);root.replaceChildren(view);let stopTheme=followTheme(view);function select(id){ctx.
has(id)&&(selected=id,highlight(),host.get("selected")!==id&&host.set("selected",id),host.link(linkTo(id,"")))}function highlight(scroll=!0){
let{content}=ctx;if(!content)return;let reveals=parts.map(part=>part.highlight(content,selected));if((shown.id!==selected||
shown.content!==content)&&redrawDetail(),shown={id:selected,content},scroll)for(let reveal2 of reveals)reveal2()}function redrawDetail(){
ctx.content&&detail.show(ctx.content,selected)}function clearPending(){ctx.pending.clear(),redrawDetail()}function request(message){
message.kind==="stop"&&host.get("running")&&host.interrupt?.()||(ctx.local="",header.drawNotes(),host.ask(message,PATIENCE).
then(answer=>{answer==="done"&&message.kind==="run_again"&&clearPending(),answer==="gone"&&(ctx.local=host.get("busy")?BUSY:
GONE),header.drawNotes(),header.drawControls()}))}function drawWaiting(){view.classList.add("dyn-waiting"),header.drawProgress(),
header.drawNotes(),header.drawControls()}function draw(){let content=host.get("content");if(!content){drawWaiting();return}
view.classList.remove("dyn-waiting"),ctx.content=content,view.setAttribute("role","region"),view.setAttribute("aria-labe\
l",`dynascope view: ${content.headline.slice(0,300)}`),sourceTitle.textContent=content.sources.length===1?`Source · ${content.
sources[0].label}`:"Source",source.hidden=!content.sources.length,split.node.hidden=!content.split.svg,middle2.classList.
toggle("dyn-alone",source.hidden),middle2.hidden=source.hidden&&split.node.hidden;for(let part of[header,...parts])part.
draw(content);selected=[host.get("selected"),selected,content.first].find(id=>id&&content.details[id])||"",highlight(shown.
id!==selected)}view.addEventListener("keydown",event=>{if(event.key!=="Escape")return;let stop=split.node.querySelector(
'.dyn-node[tabindex="0"]');stop&&detail.node.contains(document.activeElement)&&stop.focus(),event.stopPropagation()});let stops=[
host.on("content",draw),host.on("selected",()=>{let id=host.get("selected");id===selected||!ctx.has(id)||(selected=id,highlight())}),
host.on("now",header.drawProgress),host.on("settings",clearPending),host.on("can_run_again",redrawDetail)];for(let name of[
"settings","busy","can_run_again","command"]){let update=()=>{header.drawControls(),header.drawNotes(),advice.drawButton(),
check.drawButton()};stops.push(host.on(name,update))}for(let name of["status","edited","diff","printed"]){let update=()=>{
ctx.local="",header.drawNotes()};stops.push(host.on(name,update))}async function checkKernel(){await host.ask({kind:"pin\
g"},PATIENCE)!=="gone"||ctx.gone||(ctx.gone=!0,ctx.local=GONE,draw())}host.connection&&stops.push(host.connection(checkKernel));
function follow(hash){let link=parseLink(hash);if(!link)return;let at=host.get("content")?.details[link.id];at&&link.part&&
detail.choose(at.kind,link.part),selected=link.id,shown={id:"",content:null},ctx.has(link.id)&&highlight()}return host.hash&&
follow(host.hash(follow)),draw(),()=>{stopTheme(),header.stop(),split.stop();for(let stop of stops)stop()}}function widgetHost(model){
let next=0,content=null,turn=0,waiting=new Map,draws=new Set,read=()=>{let given=model.get("content"),mine=++turn,use=whole=>{
if(mine===turn){content=whole;for(let draw of draws)draw()}};given?.gzip?unzipped(given.gzip).then(use):use(given)};model.
on("change:content",read),read();let receive=message=>{message?.kind==="ack"&&waiting.get(String(message.id))?.("done")};
return model.on("msg:custom",receive),{live:!0,get:name=>name==="content"?content:model.get(name),set(name,value){model.
set(name,value);try{model.save_changes()}catch{}},on(name,act){return name==="content"?(draws.add(act),()=>draws.delete(
act)):(model.on(`change:${name}`,act),()=>model.off(`change:${name}`,act))},link:()=>{},connection(act){return model.on(
"comm_live_update",act),()=>model.off("comm_live_update",act)},interrupt(){let kernel=model.widget_manager?.kernel;return kernel?.
interrupt?(kernel.interrupt(),!0):!1},ask:(message,patience)=>new Promise(resolve=>{let id=`${Date.now()}-${next++}`,settle=answer=>{
waiting.delete(id),clearTimeout(timer),resolve(answer)},timer=setTimeout(()=>settle("gone"),patience);waiting.set(id,settle);
try{model.send({...message,id})}catch{settle("gone")}}),close(){model.off("msg:custom",receive),model.off("change:conten\
t",read)}}}function pageHost(content){let values={content,selected:"",settings:content.settings,busy:!1,can_run_again:!1},
timer=0;return{live:!1,get:name=>values[name],set(name,value){values[name]=value},on:()=>()=>{},link(hash){clearTimeout(
timer),timer=setTimeout(()=>history.replaceState(null,"",hash))},hash(act){return addEventListener("hashchange",event=>{
clearTimeout(timer),history.replaceState(null,"",event.newURL),act(new URL(event.newURL).hash)}),location.hash},ask:async()=>"\
gone",close:()=>{}}}function render({model,el}){if(el.classList.add("dyn-widget"),model.get("selected")===void 0)return renderJob(
model,el);let host=widgetHost(model),stop=mount(el,host),fallback=model.get("fallback");return fallback&&el.append(h("st\
yle",{text:`.${fallback}, ${OUTPUT}:has(.${fallback}) { display: none }`})),()=>{stop(),host.close()}}function mountPage(root,content){
return mount(root,pageHost(content))}function mountGroup(root,content,selected){let host={...pageHost(content),hash:void 0,
link:()=>{}};return host.set("selected",selected),mount(root,host)}function renderJob(model,el){let given=model.get("con\
tent"),stop=(given.gzip?unzipped(given.gzip):Promise.resolve(given)).then(job=>mountJob(el,job,mountGroup));return()=>{stop.
then(end=>end())}}async function openPage(){let element=id=>document.getElementById(id),data=element("dyn-data"),text=String(
data.textContent),content=data.dataset.packed==="gzip"?await unzipped(text):JSON.parse(text),root=element("dyn-view");return content.
views?mountJob(root,content,mountGroup):mountPage(root,content)}var main_default={render};export{main_default as default,mount,mountPage,openPage,pageHost,render};
